"""YAML and JSON with line and column of every key.

Plain scalars of YAML follow the YAML 1.2 core schema: `1e-4` is a number, `no` and `2024-01-01` are strings. Tags
are refused, so nothing can be constructed but plain data. A key without a value is an empty section where a
section belongs.

JSON is read by the standard library, which gives no positions; the same text is composed as YAML for these.
"""

import json
import re
from contextlib import suppress
from typing import Any, cast

import yaml

from penstock.config.errors import KeyPath, Position
from penstock.config.section import Section
from penstock.config.shape import ScalarShape, SectionShape, Shape, child_shape
from penstock.config.syntax import Parsed

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"}
_MAX_NODES = 1_000_000
# What JSON may hold and YAML refuses or takes for a line break; as many digits instead move no position.
_JSON_ONLY = re.compile(r"[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]|(?<=\\u)[dD][89a-fA-F]")
_JSON_PROBLEMS = {
    "Expecting property name enclosed in double quotes": "expected a key in double quotes",
    "Illegal trailing comma before end of object": "expected a key in double quotes",
    "Extra data": "expected the end of the file",
}


def read_yaml(text: str, root: type[Section]) -> Parsed:
    return read_yaml_value(text, SectionShape(root))


def read_yaml_value(text: str, shape: Shape, *, typed: bool = False) -> Parsed:
    """Reads a value of this shape; `typed` keeps a bare word or number as a string where one belongs."""
    parsed = Parsed()
    try:
        documents = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"is not valid YAML: {error.problem or error.context}"
        parsed.give_up(message, (mark.line + 1, mark.column + 1) if mark else None)
    except yaml.reader.ReaderError as error:
        message = "is not valid YAML: unprintable character; write it as \\x.. in double quotes"
        before = text[: error.position]
        parsed.give_up(message, (before.count("\n") + 1, len(before) - before.rfind("\n")))
    else:
        if len(documents) > 1:
            parsed.add((), "holds more than one YAML document", _start(documents[1]))
        if documents:
            parsed.data = _Walk(parsed, typed).value(documents[0], (), shape)
    return parsed


def resolve_plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "", 1)) if _SPECIAL.fullmatch(text) else text


class _Walk:
    def __init__(self, parsed: Parsed, typed: bool) -> None:
        self.parsed = parsed
        self.typed = typed
        self.num_nodes = 0
        self.open: set[int] = set()

    def value(self, node: yaml.Node, path: KeyPath, shape: Shape | None) -> Any:
        self.num_nodes += 1
        if node.tag not in _TAGS:
            self.parsed.add(path, f"has the tag '{node.tag}'; tags are not supported", _start(node))
            return None
        if isinstance(node, yaml.ScalarNode):
            text = cast(str, node.value)
            if node.style or (self.typed and isinstance(shape, ScalarShape) and shape.type is str):
                return text
            return {} if text == "" and isinstance(shape, SectionShape) else resolve_plain(text)
        if id(node) in self.open or self.num_nodes > _MAX_NODES:
            self.parsed.add(path, "repeats itself without end through its anchors", _start(node))
            return None
        self.open.add(id(node))
        is_mapping = isinstance(node, yaml.MappingNode)
        result = self._mapping(node, path, shape) if is_mapping else self._sequence(node, path, shape)
        self.open.discard(id(node))
        return result

    def _sequence(self, node: yaml.Node, path: KeyPath, shape: Shape | None) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            self.parsed.positions[(*path, index)] = _start(item)
            items.append(self.value(item, (*path, index), child_shape(shape, index)))
        return items

    def _mapping(self, node: yaml.Node, path: KeyPath, shape: Shape | None) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.parsed.add(path, "has a key that is not a name", _start(key_node))
            elif key_node.value == "<<" and not key_node.style:
                merged |= self._merged(value_node, path, shape)
            elif key_node.value in own:
                self.parsed.add((*path, key_node.value), "is written twice", _start(key_node))
            else:
                key = key_node.value
                self.parsed.positions[(*path, key)] = _start(key_node)
                own[key] = self.value(value_node, (*path, key), child_shape(shape, key))
        return merged | own

    def _merged(self, node: yaml.Node, path: KeyPath, shape: Shape | None) -> dict[str, Any]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            value = self.value(source, path, shape)
            if isinstance(value, dict):
                merged = value | merged
            else:
                self.parsed.add(path, "merges (<<) something that is not a mapping", _start(source))
        return merged


def _start(node: yaml.Node) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1


def read_json(text: str, root: type[Section] | None = None) -> Parsed:  # noqa: ARG001 -- JSON needs no schema
    parsed = Parsed()
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        message = _JSON_PROBLEMS.get(error.msg) or error.msg[:1].lower() + error.msg[1:]
        message = message.replace("expecting", "expected")
        parsed.give_up(f"is not valid JSON: {message}", (error.lineno, error.colno))
        return parsed
    with suppress(
        yaml.YAMLError
    ):  # a key of more than 1,024 characters: problems are reported without their lines
        same_positions = _JSON_ONLY.sub(lambda match: "0" * len(match[0]), text.replace("\t", " "))
        # For the positions, and for keys that are written twice.
        _Walk(parsed, typed=False).value(yaml.compose(same_positions, Loader=_Loader), (), None)
    parsed.data = data
    return parsed
