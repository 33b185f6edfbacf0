"""JSON with line and column of every key.

The standard library's parser gives no positions, so the nesting is walked here; strings and numbers are read by the
standard library's own scanners.
"""

import json
import re
from bisect import bisect_right
from json.decoder import scanstring
from typing import Any

from penstock.config.paths import Path, Position
from penstock.config.section import Section
from penstock.config.syntax.parsed import Parsed

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


def read_json(text: str, root: type[Section]) -> Parsed:
    """Reads one JSON value. `root` is not needed: JSON says itself what is text and what is a number."""
    parsed = Parsed({})
    walk = _Walk(text, parsed)
    try:
        data, end = walk.value(walk.skip(0), ())
        if walk.skip(end) != len(text):
            raise json.JSONDecodeError("expected the end of the file", text, walk.skip(end))
        parsed.data = data
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        parsed.add((), f"is not valid JSON: {message}", walk.position(error.pos))
    return parsed


class _Walk:
    """One walk over the text; every method takes an offset and gives the offset behind what it read."""

    def __init__(self, text: str, parsed: Parsed) -> None:
        self.text = text
        self.parsed = parsed
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def position(self, offset: int) -> Position:
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def skip(self, offset: int) -> int:
        match = _SPACE.match(self.text, offset)
        return match.end() if match else offset

    def value(self, offset: int, path: Path) -> tuple[Any, int]:
        first = self.text[offset : offset + 1]
        if first == "{":
            return self._object(offset + 1, path)
        if first == "[":
            return self._array(offset + 1, path)
        if first == '"':
            return scanstring(self.text, offset + 1, True)
        return self._word_or_number(offset)

    def _word_or_number(self, offset: int) -> tuple[Any, int]:
        for word, value in _WORDS.items():
            if self.text.startswith(word, offset):
                return value, offset + len(word)
        match = _NUMBER.match(self.text, offset)
        if match is None:
            raise json.JSONDecodeError("expected a value", self.text, offset)
        is_float = match[1] is not None or match[2] is not None
        return (float(match[0]) if is_float else int(match[0])), match.end()

    def _array(self, offset: int, path: Path) -> tuple[list[Any], int]:
        items: list[Any] = []
        offset = self.skip(offset)
        if self.text.startswith("]", offset):
            return items, offset + 1
        while True:
            place = (*path, len(items))
            self.parsed.positions[place] = self.position(offset)
            item, offset = self.value(offset, place)
            items.append(item)
            offset, is_last = self._separator(offset, "]")
            if is_last:
                return items, offset

    def _object(self, offset: int, path: Path) -> tuple[dict[str, Any], int]:
        entries: dict[str, Any] = {}
        offset = self.skip(offset)
        if self.text.startswith("}", offset):
            return entries, offset + 1
        while True:
            offset = self._entry(offset, path, entries)
            offset, is_last = self._separator(offset, "}")
            if is_last:
                return entries, offset

    def _entry(self, offset: int, path: Path, entries: dict[str, Any]) -> int:
        if not self.text.startswith('"', offset):
            raise json.JSONDecodeError("expected a key in double quotes", self.text, offset)
        key, end = scanstring(self.text, offset + 1, True)
        place = (*path, key)
        if key in entries:
            self.parsed.add(place, "is written twice", self.position(offset))
        else:
            self.parsed.positions[place] = self.position(offset)
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
