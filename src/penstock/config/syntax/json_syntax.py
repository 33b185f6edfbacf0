"""JSON with line and column of every key.

The standard library's parser gives no positions, so the nesting is walked here; strings are read by the
standard library's own scanner.
"""

import json
import re
from collections.abc import Callable
from json import decoder
from typing import Any, cast

from penstock.config.paths import KeyPath
from penstock.config.section import Section
from penstock.config.syntax.parsed import Parsed, TextPlaces

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_WORDS = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


def read_json(text: str, root: type[Section]) -> Parsed:  # noqa: ARG001 -- JSON needs no schema to be read
    """Reads a run file in JSON."""
    return read_json_value(text)


def read_json_value(text: str) -> Parsed:
    """Reads one JSON value."""
    parsed = Parsed()
    walk = _Walk(text, parsed)
    try:
        data, end = walk.value(walk.skip(0), ())
        if walk.skip(end) != len(text):
            raise json.JSONDecodeError("expected the end of the file", text, walk.skip(end))
        parsed.data = data
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        parsed.give_up(f"is not valid JSON: {message}", walk.places.position(error.pos))
    return parsed


class _Walk:
    """One walk over the text; every method takes an offset and gives the offset behind what it read."""

    def __init__(self, text: str, parsed: Parsed) -> None:
        self.text = text
        self.parsed = parsed
        self.places = TextPlaces(text)

    def skip(self, offset: int) -> int:
        match = _SPACE.match(self.text, offset)
        return match.end() if match else offset

    def value(self, offset: int, path: KeyPath) -> tuple[Any, int]:
        first = self.text[offset : offset + 1]
        if first == "{":
            return self._object(offset + 1, path)
        if first == "[":
            return self._array(offset + 1, path)
        if first == '"':
            return self._string(offset)
        return self._word_or_number(offset)

    def _string(self, offset: int) -> tuple[str, int]:
        scan = cast(Callable[[str, int, bool], tuple[str, int]], vars(decoder)["scanstring"])
        return scan(self.text, offset + 1, True)

    def _word_or_number(self, offset: int) -> tuple[Any, int]:
        for word, value in _WORDS.items():
            if self.text.startswith(word, offset):
                return value, offset + len(word)
        match = _NUMBER.match(self.text, offset)
        if match is None:
            raise json.JSONDecodeError("expected a value", self.text, offset)
        is_float = match[1] is not None or match[2] is not None
        return (float(match[0]) if is_float else int(match[0])), match.end()

    def _array(self, offset: int, path: KeyPath) -> tuple[list[Any], int]:
        items: list[Any] = []
        offset = self.skip(offset)
        if self.text.startswith("]", offset):
            return items, offset + 1
        while True:
            place = (*path, len(items))
            self.parsed.positions[place] = self.places.position(offset)
            item, offset = self.value(offset, place)
            items.append(item)
            offset, is_last = self._separator(offset, "]")
            if is_last:
                return items, offset

    def _object(self, offset: int, path: KeyPath) -> tuple[dict[str, Any], int]:
        entries: dict[str, Any] = {}
        offset = self.skip(offset)
        if self.text.startswith("}", offset):
            return entries, offset + 1
        while True:
            offset = self._entry(offset, path, entries)
            offset, is_last = self._separator(offset, "}")
            if is_last:
                return entries, offset

    def _entry(self, offset: int, path: KeyPath, entries: dict[str, Any]) -> int:
        if not self.text.startswith('"', offset):
            raise json.JSONDecodeError("expected a key in double quotes", self.text, offset)
        key, end = self._string(offset)
        place = (*path, key)
        if key in entries:
            self.parsed.add(place, "is written twice", self.places.position(offset))
        else:
            self.parsed.positions[place] = self.places.position(offset)
        end = self.skip(end)
        if not self.text.startswith(":", end):
            raise json.JSONDecodeError("expected ':'", self.text, end)
        value, end = self.value(self.skip(end + 1), place)
        entries.setdefault(key, value)
        return end

    def _separator(self, offset: int, closing: str) -> tuple[int, bool]:
        offset = self.skip(offset)
        if self.text.startswith(closing, offset):
            return offset + 1, True
        if self.text.startswith(",", offset):
            return self.skip(offset + 1), False
        raise json.JSONDecodeError(f"expected ',' or '{closing}'", self.text, offset)
