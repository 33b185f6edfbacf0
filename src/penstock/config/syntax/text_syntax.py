"""Protobuf text format: read by protobuf's own parser, with all problems at once.

Before protobuf sees the text, a walk along the schema notes where each field stands, and sets aside what
protobuf has no type for (sizes, unions) and what it would refuse (unknown fields, values of another type).
Those stretches are blanked with spaces, so that no position moves; their values join the data afterwards and
are judged like those of any other syntax.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from google.protobuf import text_format

from penstock.config.section import Section
from penstock.config.syntax.descriptors import data_of, message_class
from penstock.config.syntax.parsed import Parsed, TextPlaces
from penstock.config.syntax.text_tree import TextError, read_tree
from penstock.config.syntax.text_walk import SetAside, TextWalk

_MAX_ROUNDS = 100


def read_text(text: str, root: type[Section]) -> Parsed:
    """Reads a text-format message of the root section."""
    parsed = Parsed()
    places = TextPlaces(text)
    walk = TextWalk(parsed, places)
    try:
        walk.section(read_tree(text), root, ())
    except TextError as error:
        parsed.give_up(f"is not valid text format: {error}", places.position(error.offset))
        return parsed
    message = _parse(_Source(text, places, walk), root, parsed)
    parsed.data = data_of(message, root)
    for aside in walk.asides:
        _put(parsed.data, aside)
    return parsed


@dataclass(slots=True)
class _Source:
    """The text that protobuf reads, where fields can be blanked."""

    text: str
    places: TextPlaces
    walk: TextWalk

    def blank(self, start: int, end: int) -> None:
        kept = "".join(character if character == "\n" else " " for character in self.text[start:end])
        self.text = self.text[:start] + kept + self.text[end:]


def _parse(source: _Source, root: type[Section], parsed: Parsed) -> Any:
    """Parses until protobuf is content, blanking the field of each error that is left."""
    for start, end in source.walk.blanks:
        source.blank(start, end)
    for _ in range(_MAX_ROUNDS):
        try:
            return text_format.Parse(source.text, message_class(root)())
        except text_format.ParseError as error:
            if not _report(error, source, parsed):
                break
    return message_class(root)()


def _report(error: text_format.ParseError, source: _Source, parsed: Parsed) -> bool:
    """Notes an error at the field it stands in, and blanks that field; False when there is no field."""
    line, column = error.GetLine() or 1, error.GetColumn() or 1
    message = str(error).partition(" : ")[2].strip() or str(error)
    offset = source.places.offset(line, column)
    around = [field for field in source.walk.fields if field.start <= offset < field.end]
    if not around:
        parsed.give_up(f"is not valid text format: {message}", (line, column))
        return False
    innermost = min(around, key=lambda field: field.end - field.start)
    parsed.add(innermost.path, f"cannot be read: {message}", (line, column))
    parsed.broken.add(innermost.path)
    source.blank(innermost.start, innermost.end)
    source.walk.fields.remove(innermost)
    return True


def _put(data: Any, aside: SetAside) -> None:
    """Puts a value that was set aside at its place. Elements of lists come in order, so indices fit."""
    for part, following in pairwise(aside.path):
        if isinstance(data, list):
            if not data:  # its entries could not be read, which is reported already
                return
            data = data[min(int(part), len(data) - 1)]
        else:
            data = data.setdefault(part, [] if isinstance(following, int) else {})
    last = aside.path[-1]
    if isinstance(data, list) and isinstance(last, int):
        data.insert(last, aside.value)
    elif aside.value in ([], {}):
        data.setdefault(last, aside.value)
    else:
        data[last] = aside.value
