"""The nesting of a protobuf text, with offsets and without a schema.

Protobuf's parser stops at its first error and keeps no positions. The tree tells where every field begins and
ends, so that fields which protobuf would refuse can be set aside and reported together.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = r"[a-zA-Z_][0-9a-zA-Z_+-]*"
_NUMBER = r"(?:[0-9+-]|\.[0-9])[0-9a-zA-Z_.+-]*"
_QUOTED = r"\"(?:[^\"\n\\]|\\.)*\"|'(?:[^'\n\\]|\\.)*'"
_TOKEN = re.compile(
    rf"(?:\s|#[^\n]*)*(?:(?P<name>{_NAME})|(?P<number>{_NUMBER})|(?P<quoted>{_QUOTED})|(?P<sign>\S)|\Z)"
)
_CLOSING = {"{": "}", "<": ">"}


class TextError(Exception):
    """The text breaks the grammar at an offset."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Token:
    """A name, number, quoted string or single sign; kind 'end' closes the text."""

    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"'{self.text}'" if self.kind != "end" else "the end of the file"


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One token, or the adjacent strings that make up one value."""

    tokens: tuple[Token, ...]
    start: int


@dataclass(frozen=True, slots=True)
class ListNode:
    """Values in square brackets."""

    items: tuple["Node", ...]
    start: int


@dataclass(frozen=True, slots=True)
class MessageNode:
    """Fields in braces or angle brackets, or those of the whole text."""

    fields: tuple["FieldNode", ...]
    start: int


@dataclass(frozen=True, slots=True)
class FieldNode:
    """A name with its value, from the name to the separator behind the value."""

    name: str
    value: "Node"
    start: int
    end: int


Node = ScalarNode | ListNode | MessageNode


def read_tree(text: str) -> MessageNode:
    """The fields of a text; raises TextError where it breaks the grammar."""
    return MessageNode(tuple(_TreeReader(text).fields(closing=None)), 0)


def _tokens_of(text: str) -> list[Token]:
    tokens: list[Token] = []
    offset = 0
    while (match := _TOKEN.match(text, offset)) and match.lastgroup is not None:
        offset = match.end()
        tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup), offset))
    return [*tokens, Token("end", "", len(text), len(text))]


class _TreeReader:
    """Reads tokens from the first to the last."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens_of(text)
        self._index = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._index]

    def _take(self) -> Token:
        token = self._next
        self._index += token.kind != "end"
        return token

    def _take_sign(self, *signs: str) -> str | None:
        is_sign = self._next.kind == "sign" and self._next.text in signs
        return self._take().text if is_sign else None

    def _expect(self, sign: str) -> None:
        if self._take_sign(sign) is None:
            raise TextError(f"expected '{sign}', found {self._next}", self._next.start)

    def fields(self, closing: str | None) -> Iterator[FieldNode]:
        """The fields up to a closing sign, or to the end of the text."""
        while not self._closes(closing):
            name = self._take()
            if name.kind != "name":
                raise TextError(f"expected the name of a field, found {name}", name.start)
            has_colon = self._take_sign(":") is not None
            if not has_colon and self._next.text not in ("{", "<", "["):
                self._expect(":")
            value = self._value()
            self._take_sign(",", ";")
            yield FieldNode(name.text, value, name.start, self._tokens[self._index - 1].end)

    def _closes(self, closing: str | None) -> bool:
        if self._next.kind == "end" and closing is not None:
            self._expect(closing)
        return self._next.kind == "end" if closing is None else self._take_sign(closing) is not None

    def _value(self) -> Node:
        start = self._next.start
        if sign := self._take_sign("{", "<"):
            return MessageNode(tuple(self.fields(_CLOSING[sign])), start)
        return ListNode(tuple(self._items()), start) if self._take_sign("[") else self._scalar()

    def _items(self) -> Iterator[Node]:
        if self._take_sign("]"):
            return
        yield self._value()
        while self._take_sign("]") is None:
            self._expect(",")
            yield self._value()

    def _scalar(self) -> ScalarNode:
        first = self._take()
        if first.kind not in ("name", "number", "quoted"):
            problem = (
                "a quote is not closed" if first.text in ("'", '"') else f"expected a value, found {first}"
            )
            raise TextError(problem, first.start)
        tokens = [first]
        while first.kind == "quoted" and self._next.kind == "quoted":
            tokens.append(self._take())
        return ScalarNode(tuple(tokens), first.start)
