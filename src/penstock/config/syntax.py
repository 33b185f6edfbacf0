"""Text -> plain data with positions, in three syntaxes: YAML and JSON here, protobuf text in `text_syntax`.

Each reader turns text into nested dicts, lists and scalars, keeps the line and column of every key, and
collects what is wrong with the text instead of stopping at the first problem. None of them judges values;
they look at the shape of the root section only where the syntax needs it.

Plain scalars of YAML follow the YAML 1.2 core schema: `1e-4` is a number, `no` and `2024-01-01` are strings. Tags
are refused, so nothing can be constructed but plain data. A key without a value is an empty section where a
section belongs.

JSON is read by the standard library, which gives no positions; the same text is composed as YAML for these.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import yaml

from penstock.config.errors import KeyPath, Position, Problem, format_path
from penstock.config.section import Section
from penstock.config.shape import ScalarShape, SectionShape, Shape, child_shape

SYNTAX_OF_SUFFIX = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".config": "text",
    ".pbtxt": "text",
    ".textproto": "text",
}

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


@dataclass(slots=True)
class Parsed:
    """Plain data with the position of every key, and the problems of the text.

    `readable` is False when the text breaks off so that its data mean nothing. `broken` holds paths whose value
    could not be read: the problem is known, and nothing more should be reported about them. `repeated` are the paths
    of scalars that text format has twice.
    """

    data: Any = None
    positions: dict[KeyPath, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True
    broken: set[KeyPath] = field(default_factory=set)
    repeated: list[KeyPath] = field(default_factory=list)

    def add(self, path: KeyPath, message: str, position: Position | None = None) -> None:
        line, column = position or (None, None)
        self.problems.append(Problem(format_path(path), message, line, column))

    def give_up(self, message: str, position: Position | None = None) -> None:
        """Keeps only the problem after which the rest of the text cannot be understood."""
        self.problems.clear()
        self.add((), message, position)
        self.readable = False


def read(text: str, syntax: str, root: type[Section]) -> Parsed:
    """Reads text in one of the syntaxes 'yaml', 'json' and 'text'."""
    text = text.removeprefix("\ufeff")
    try:
        if syntax == "yaml":
            return read_yaml(text, SectionShape(root))
        if syntax == "json":
            return read_json(text)
        from penstock.config.text_syntax import read_text  # for the few who write it

        return read_text(text, root)
    except RecursionError:
        problem = "is nested too deeply"
    except ValueError:  # Python reads no integer of more than 4,300 digits
        problem = "holds a number with too many digits"
    parsed = Parsed()
    parsed.give_up(problem)
    return parsed


def read_yaml(text: str, shape: Shape, *, typed: bool = False) -> Parsed:
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
            parsed.data = _YamlWalk(parsed, typed).value(documents[0], (), shape)
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


@dataclass(slots=True)
class _YamlWalk:
    """One walk over the nodes of a document; problems and positions go to `parsed`."""

    parsed: Parsed
    typed: bool = False
    num_nodes: int = 0
    open: set[int] = field(default_factory=set)

    def value(self, node: yaml.Node, path: KeyPath, shape: Shape | None) -> Any:
        self.num_nodes += 1
        if node.tag not in _TAGS:
            self.parsed.add(path, f"has the tag '{node.tag}'; tags are not supported", _start(node))
            return None
        if isinstance(node, yaml.ScalarNode):
            text: str = node.value
            if node.style or (self.typed and isinstance(shape, ScalarShape) and shape.type is str):
                return text
            return {} if text == "" and isinstance(shape, SectionShape) else resolve_plain(text)
        if id(node) in self.open or self.num_nodes > _MAX_NODES:
            self.parsed.add(path, "repeats itself without end through its anchors", _start(node))
            return None
        self.open.add(id(node))
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        items: list[Any] = []
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.parsed.positions[*path, index] = _start(item)
                items.append(self.value(item, (*path, index), child_shape(shape, index)))
        else:
            for key_node, value_node in node.value:
                key = key_node.value
                if not isinstance(key_node, yaml.ScalarNode):
                    self.parsed.add(path, "has a key that is not a name", _start(key_node))
                elif key == "<<" and not key_node.style:
                    merged |= self._merged(value_node, path, shape)
                elif key in own:
                    self.parsed.add((*path, key), "is written twice", _start(key_node))
                else:
                    self.parsed.positions[*path, key] = _start(key_node)
                    own[key] = self.value(value_node, (*path, key), child_shape(shape, key))
        self.open.discard(id(node))
        return items if isinstance(node, yaml.SequenceNode) else merged | own

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


def read_json(text: str) -> Parsed:
    parsed = Parsed()
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        message = _JSON_PROBLEMS.get(error.msg) or error.msg[:1].lower() + error.msg[1:]
        message = message.replace("expecting", "expected")
        parsed.give_up(f"is not valid JSON: {message}", (error.lineno, error.colno))
        return parsed
    # A key of more than 1,024 characters is no YAML: problems are then reported without their lines.
    with suppress(yaml.YAMLError):
        same_positions = _JSON_ONLY.sub(lambda match: "0" * len(match[0]), text.replace("\t", " "))
        # For the positions, and for keys that are written twice.
        _YamlWalk(parsed).value(yaml.compose(same_positions, Loader=_Loader), (), None)
    parsed.data = data
    return parsed
