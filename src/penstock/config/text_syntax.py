"""Protobuf text format: the grammar gives a tree with positions, and a walk along the sections gives the data.

A value is read as the type of its field where it fits: `t` is a boolean, `FG_DAG` an enum name. Everything else
is kept as what it looks like (a size such as 64MiB, an unknown field, a number where a name belongs), so that
the check reports it in the same words as in the other syntaxes. Free values are written as
google.protobuf.Struct, Value and ListValue.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import KeyPath, Position, hint
from penstock.config.section import Section
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    fields_of,
    is_free_element,
)
from penstock.config.syntax import Parsed

_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*)*(?:
        (?P<name>[a-zA-Z_][0-9a-zA-Z_+-]*)
      | (?P<number>(?:[0-9+-]|\.[0-9])[0-9a-zA-Z_.+-]*)
      | (?P<quoted>"(?:[^"\n\\]|\\.)*"|'(?:[^'\n\\]|\\.)*')
      | (?P<sign>\S)
      | \Z)""",
    re.VERBOSE,
)
_CLOSING = {"{": "}", "<": ">"}
_BOOLEANS = {
    **dict.fromkeys(("true", "True", "t", "1"), True),
    **dict.fromkeys(("false", "False", "f", "0"), False),
}
_OCTAL = re.compile(r"(-?)0([0-9]+)")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|[^\\]+")
_ESCAPED = dict(zip("abfnrtv'\"\\", "\a\b\f\n\r\t\v'\"\\", strict=True))
_SCALAR_VALUES: dict[str, tuple[type, ...]] = {
    "null_value": (str, int),
    "number_value": (int, float),
    "string_value": (str,),
    "bool_value": (bool,),
}
# A float without fraction is read as an integer below this, where doubles hold every integer.
_EXACT = 1 << 53


def read_text(text: str, root: type[Section]) -> Parsed:
    parsed = Parsed()
    try:
        fields = _Grammar(text).fields(closing=None)
        parsed.data = _TextWalk(parsed).section(fields, root, ())
    except _TextError as error:
        parsed.give_up(f"is not valid text format: {error}", error.position)
    return parsed


class _TextError(Exception):
    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class _Token:
    """A name, number, quoted string or single sign; kind 'end' closes the text."""

    kind: str
    text: str
    position: Position

    def __str__(self) -> str:
        return f"'{self.text}'" if self.kind != "end" else "the end of the file"


@dataclass(frozen=True, slots=True)
class _Node:
    """One value of three kinds, by which of these is set.

    `tokens`: a scalar, several where adjacent strings make up one. `items`: a list in square brackets. `fields`:
    a message in braces or angle brackets.
    """

    position: Position
    tokens: tuple[_Token, ...] = ()
    items: list["_Node"] | None = None
    fields: list["_Field"] | None = None


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    value: _Node
    position: Position


class _Grammar:
    """The nesting of a text, whatever its schema. Raises _TextError where the grammar is broken."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens_of(text))
        self._index = 0

    def fields(self, closing: str | None) -> list[_Field]:
        """The fields up to a closing sign, or to the end of the text."""
        fields = []
        while not (self._next.kind == "end" if closing is None else self._take_sign(closing)):
            if self._next.kind == "end" and closing is not None:
                self._expect(closing)
            name = self._take()
            if name.kind != "name":
                raise _TextError(f"expected the name of a field, found {name}", name.position)
            if not self._take_sign(":") and self._next.text not in ("{", "<", "["):
                self._expect(":")
            fields.append(_Field(name.text, self._value(), name.position))
            self._take_sign(",", ";")
        return fields

    def _value(self) -> _Node:
        first = self._take()
        if first.kind in ("name", "number"):
            return _Node(first.position, tokens=(first,))
        if first.kind == "quoted":
            tokens = [first]
            while self._next.kind == "quoted":
                tokens.append(self._take())
            return _Node(first.position, tokens=tuple(tokens))
        if first.text in _CLOSING:
            return _Node(first.position, fields=self.fields(_CLOSING[first.text]))
        if first.text != "[":
            is_quote = first.text in ("'", '"')
            problem = "a quote is not closed" if is_quote else f"expected a value, found {first}"
            raise _TextError(problem, first.position)
        items: list[_Node] = []
        while not self._take_sign("]"):
            if items:
                self._expect(",")
            items.append(self._value())
        return _Node(first.position, items=items)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._index]

    def _take(self) -> _Token:
        token = self._next
        self._index += token.kind != "end"
        return token

    def _take_sign(self, *signs: str) -> bool:
        is_there = self._next.kind == "sign" and self._next.text in signs
        self._index += is_there
        return is_there

    def _expect(self, sign: str) -> None:
        if not self._take_sign(sign):
            raise _TextError(f"expected '{sign}', found {self._next}", self._next.position)


def _tokens_of(text: str) -> Iterator[_Token]:
    offset, line, line_start = 0, 1, 0
    while match := _TOKEN.match(text, offset):
        kind = match.lastgroup or "end"
        start = match.start(kind) if kind != "end" else len(text)
        if num_breaks := text.count("\n", offset, start):
            line, line_start = line + num_breaks, text.rindex("\n", offset, start) + 1
        yield _Token(kind, text[start : match.end()], (line, start - line_start + 1))
        offset = match.end()
        if kind == "end":
            return


@dataclass(frozen=True, slots=True)
class _TextWalk:
    """One walk over the tree along the shape of a section; problems and positions go to `parsed`."""

    parsed: Parsed

    def section(self, fields: list[_Field], section: type[Section], path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        known = fields_of(section)
        for field in fields:
            field_path = (*path, field.name)
            self.parsed.positions.setdefault(field_path, field.position)
            shape = known[field.name].shape if field.name in known else None
            nodes = [field.value] if field.value.items is None else field.value.items
            if isinstance(shape, ListShape):
                items = data.setdefault(field.name, [])
                for node in nodes:
                    item_path = (*field_path, len(items))
                    position = field.position if node is field.value else node.position
                    self.parsed.positions.setdefault(item_path, position)
                    items.append(self._value(node, shape.item, item_path))
            elif isinstance(shape, MapShape) and (not nodes or not is_free_element(shape.value)):
                entries = data.setdefault(field.name, {})
                for node in nodes:
                    try:
                        key, value = _entry(node)
                    except _TextError as error:
                        self._refuse(field_path, error)
                        continue
                    if key in entries:
                        self.parsed.add((*field_path, key), "is written twice", field.position)
                    else:
                        self.parsed.positions.setdefault((*field_path, key), field.position)
                        entries[key] = self._value(value, shape.value, (*field_path, key))
            elif field.name in data and isinstance(shape, SectionShape | MapShape | AnyShape | None):
                self.parsed.add(field_path, "is written twice", field.position)
            else:
                if field.name in data:  # files of TorchEasyRec have it, whose reader takes the last
                    self.parsed.repeated.append(field_path)
                    self.parsed.positions[field_path] = field.position
                data[field.name] = self._value(field.value, shape, field_path)
        return data

    def _value(self, node: _Node, shape: Shape | None, path: KeyPath) -> Any:
        """The value of a node as the shape wants it, or as what it looks like where it does not fit."""
        try:
            if isinstance(shape, MapShape) and isinstance(path[-1], str):
                return _struct(node)
            if shape is not None and is_free_element(shape):
                return _free_value(node)
            if isinstance(shape, SectionShape) and node.fields is not None:
                return self.section(node.fields, shape.section, path)
            word = node.tokens[0].text if node.tokens and node.tokens[0].kind != "quoted" else None
            if word is not None and isinstance(shape, EnumShape) and word in shape.names:
                return word
            if word is not None and isinstance(shape, ScalarShape):
                if shape.type is bool and word in _BOOLEANS:
                    return _BOOLEANS[word]
                if shape.type is float and (number := _float(word)) is not None:
                    return number
                if shape.type is str and node.tokens[0].kind == "name":
                    self._refuse(path, _TextError(f"is {word}; expected a string in quotes", node.position))
            return _natural(node)
        except _TextError as error:
            self._refuse(path, error)
            return None

    def _refuse(self, path: KeyPath, error: _TextError) -> None:
        self.parsed.add(path, str(error), error.position)
        self.parsed.broken.add(path)


def _natural(node: _Node) -> Any:
    """The plain value that a node looks like, whatever the schema says."""
    if node.items is not None:
        return [_natural(item) for item in node.items]
    if node.fields is not None:
        return {field.name: _natural(field.value) for field in node.fields}
    first = node.tokens[0]
    if first.kind == "quoted":
        return "".join(_unquoted(token) for token in node.tokens)
    if first.text in ("true", "false"):
        return first.text == "true"
    for read in (_integer, _float):
        if (number := read(first.text)) is not None:
            return number
    return first.text


def _integer(word: str) -> int | None:
    try:
        return int(_OCTAL.sub(r"\g<1>0o\g<2>", word) if _OCTAL.fullmatch(word) else word, 0)
    except ValueError:
        return None


def _float(word: str) -> float | None:
    """A number as C writes it, `1.5f` and `inf` among them; one with a leading 0 is octal."""
    for text in (word, word.rstrip("f")):
        with suppress(ValueError):
            return None if _OCTAL.match(word) else float(text)
    return None


def _unquoted(token: _Token) -> str:
    def piece(match: re.Match[str]) -> bytes:
        escape = match[1]
        if escape is None:
            return match[0].encode()
        if escape[0] in "uU" and len(escape) > 1:
            return chr(int(escape[1:], 16)).encode()
        if escape[0] == "x" or escape.isdigit():
            return bytes([int(escape[1:], 16) if escape[0] == "x" else int(escape, 8)])
        return _ESCAPED.get(escape, match[0]).encode()

    try:
        return b"".join(map(piece, _ESCAPE.finditer(token.text[1:-1]))).decode()
    except ValueError as error:
        raise _TextError(f"has an escape that is no text: {token.text}", token.position) from error


def _entry(node: _Node) -> tuple[str, _Node]:
    given = {field.name: field.value for field in node.fields or ()}
    key = _natural(given["key"]) if given.keys() == {"key", "value"} else None
    if not isinstance(key, str):
        raise _TextError('expected entries such as {key: "name" value: 1}', node.position)
    return key, given["value"]


def _struct(node: _Node) -> dict[str, Any]:
    return {key: _free_value(value) for key, value in map(_entry, _repeated(node, "fields"))}


def _free_value(node: _Node) -> Any:
    """The Python value of a google.protobuf.Value; a number without fraction is an integer, as in JSON."""
    if node.fields == []:
        return None
    if node.fields is None or len(node.fields) != 1:
        raise _TextError("cannot be read: expected one value such as {number_value: 1}", node.position)
    [field] = node.fields
    if field.name == "struct_value":
        return _struct(field.value)
    if field.name == "list_value":
        return [_free_value(value) for value in _repeated(field.value, "values")]
    if field.name not in _SCALAR_VALUES:
        known = [*_SCALAR_VALUES, "struct_value", "list_value"]
        guess = hint(field.name, known)
        raise _TextError(f"cannot be read: unknown key '{field.name}'; {guess}", field.position)
    value, kinds = _natural(field.value), _SCALAR_VALUES[field.name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _TextError(f"cannot be read: {field.name} is {value!r}", field.value.position)
    if field.name == "null_value":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value


def _repeated(node: _Node, name: str) -> Iterator[_Node]:
    """The values of the one repeated field that a Struct or a ListValue has."""
    if node.fields is None:
        raise _TextError(f"cannot be read: expected {{{name} {{...}}}}", node.position)
    for field in node.fields:
        if field.name != name:
            raise _TextError(f"cannot be read: unknown key '{field.name}'; known: {name}", field.position)
        yield from [field.value] if field.value.items is None else field.value.items
