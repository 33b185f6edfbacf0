"""Values of protobuf text format by themselves: what they look like, and whether they fit a field."""

from typing import Any

from google.protobuf import text_encoding, text_format

from penstock.config.shape import EnumShape, ScalarShape, SectionShape, Shape, is_free_element
from penstock.config.syntax.text_tree import ListNode, MessageNode, Node, ScalarNode, TextError, Token

_BOOLEANS = frozenset({"true", "false", "True", "False", "t", "f", "0", "1"})
_INT64 = range(-(1 << 63), 1 << 63)


def natural(node: Node) -> Any:
    """The plain value that a node looks like, whatever the schema says."""
    if isinstance(node, ListNode):
        return [natural(item) for item in node.items]
    if isinstance(node, MessageNode):
        return {field.name: natural(field.value) for field in node.fields}
    first = node.tokens[0]
    if first.kind == "quoted":
        return "".join(_unquoted(token) for token in node.tokens)
    if first.text in ("true", "false"):
        return first.text == "true"
    integer = _integer(first.text)
    return integer if integer is not None else _number(first.text, otherwise=first.text)


def fits(node: Node, shape: Shape) -> bool:
    """Whether protobuf can read the node as a value of this shape (of one element, if it is a list)."""
    if is_free_element(shape):
        return True
    if isinstance(shape, SectionShape) or not isinstance(node, ScalarNode):
        return isinstance(shape, SectionShape) and isinstance(node, MessageNode)
    token = node.tokens[0]
    if isinstance(shape, EnumShape):
        return token.kind == "name" and token.text in shape.names
    return isinstance(shape, ScalarShape) and _fits_scalar(token, shape.type)


def lacks_quotes(node: Node, shape: Shape) -> bool:
    """Whether a bare word stands where a quoted string belongs."""
    is_text = isinstance(shape, ScalarShape) and shape.type is str
    return is_text and isinstance(node, ScalarNode) and node.tokens[0].kind == "name"


def is_readable(node: Node) -> bool:
    """Whether the escapes of a quoted string make up a text."""
    try:
        natural(node)
    except TextError:
        return False
    return True


def _fits_scalar(token: Token, kind: type) -> bool:
    if kind is str:
        return token.kind == "quoted"
    if token.kind == "quoted":
        return False
    if kind is bool:
        return token.text in _BOOLEANS
    if kind is int:
        integer = _integer(token.text)
        return integer is not None and integer in _INT64
    return _number(token.text, otherwise=None) is not None


def _integer(text: str) -> int | None:
    try:
        return int(text_format.ParseInteger(text, is_signed=True, is_long=True))
    except ValueError:
        pass
    try:
        return int(text)
    except ValueError:
        return None


def _number(text: str, otherwise: Any) -> Any:
    try:
        return float(text_format.ParseFloat(text))
    except ValueError:
        return otherwise


def _unquoted(token: Token) -> str:
    try:
        return text_encoding.CUnescape(token.text[1:-1]).decode("utf-8")
    except (ValueError, UnicodeError) as error:
        raise TextError("an escape of this text cannot be read", token.start) from error
