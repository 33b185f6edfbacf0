"""A walk over the tree of a text along the shape of a section.

It notes where every field stands, and tells what protobuf will read from what it has no type for or would
refuse.
"""

from dataclasses import dataclass, field
from typing import Any

from penstock.config.paths import KeyPath
from penstock.config.section import Section
from penstock.config.shape import ListShape, MapShape, SectionShape, Shape, fields_of, is_free_element
from penstock.config.syntax.parsed import Parsed, TextPlaces
from penstock.config.syntax.text_tree import FieldNode, ListNode, MessageNode, Node, ScalarNode
from penstock.config.syntax.text_values import fits, is_readable, lacks_quotes, natural


@dataclass(frozen=True, slots=True)
class SetAside:
    """A value that protobuf does not read, and where it belongs."""

    path: KeyPath
    value: Any


@dataclass(frozen=True, slots=True)
class WrittenField:
    """Where a field that protobuf reads begins and ends."""

    path: KeyPath
    start: int
    end: int


@dataclass(slots=True)
class TextWalk:
    """What is written where; what to blank before protobuf reads, and what to put back afterwards."""

    parsed: Parsed
    places: TextPlaces
    fields: list[WrittenField] = field(default_factory=list)
    blanks: list[tuple[int, int]] = field(default_factory=list)
    asides: list[SetAside] = field(default_factory=list)

    def section(self, node: MessageNode, section: type[Section], path: KeyPath) -> None:
        """Walks over the fields of a section."""
        counts: dict[str, int] = {}
        for written in node.fields:
            place = (*path, written.name)
            known = fields_of(section).get(written.name)
            shape = known.shape if known else None
            count = counts.get(written.name, 0)
            self._note(place, written.start)
            if count and not isinstance(shape, ListShape | MapShape):
                self.parsed.add(place, "is written twice", self.places.position(written.start))
                self.blanks.append((written.start, written.end))
            elif shape is None:
                self._set_aside(written, [(place, written.value)])
            else:
                self._field(written, place, shape, count)
            counts[written.name] = count + _num_values(written.value)

    def _field(self, written: FieldNode, place: KeyPath, shape: Shape, count: int) -> None:
        if isinstance(written.value, ListNode) and not written.value.items:
            self.asides.append(SetAside(place, {} if isinstance(shape, MapShape) else []))
            self.blanks.append((written.start, written.end))
        elif isinstance(shape, ListShape):
            self._list(written, place, shape.item, count)
        elif isinstance(shape, MapShape) and not is_free_element(shape.value):
            self._map(written, place, shape.value)
        else:
            self._values(written, [(place, written.value)], shape)

    def _list(self, written: FieldNode, place: KeyPath, item: Shape, count: int) -> None:
        is_bracketed = isinstance(written.value, ListNode)
        nodes = written.value.items if isinstance(written.value, ListNode) else (written.value,)
        values = [((*place, count + index), node) for index, node in enumerate(nodes)]
        for path, node in values:
            self._note(path, node.start if is_bracketed else written.start)
        self._values(written, values, item)

    def _map(self, written: FieldNode, place: KeyPath, shape: Shape) -> None:
        nodes = written.value.items if isinstance(written.value, ListNode) else (written.value,)
        entries = [_entry(node) for node in nodes]
        if None in entries:
            self._refuse(written, place, written.value, 'expected entries such as {key: "name" value: 1}')
            return
        values = [((*place, key), value) for key, value in filter(None, entries)]
        for path, _ in values:
            if path in self.parsed.positions:
                self.parsed.add(path, "is written twice", self.places.position(written.start))
            self._note(path, written.start)
        self._values(written, values, shape)

    def _values(self, written: FieldNode, values: list[tuple[KeyPath, Node]], shape: Shape) -> None:
        """Leaves a field to protobuf if all its values fit, and sets it aside if not."""
        for path, node in values:
            if problem := _refusal(node, shape, len(values)):
                self._refuse(written, path, node, problem)
                return
        if all(fits(node, shape) for _, node in values):
            self.fields.append(WrittenField(values[0][0], written.start, written.end))
            for path, node in values:
                if isinstance(shape, SectionShape) and isinstance(node, MessageNode):
                    self.section(node, shape.section, path)
        else:
            self._set_aside(written, values)

    def _set_aside(self, written: FieldNode, values: list[tuple[KeyPath, Node]]) -> None:
        self.asides += [SetAside(path, natural(node)) for path, node in values]
        self.blanks.append((written.start, written.end))

    def _refuse(self, written: FieldNode, path: KeyPath, node: Node, message: str) -> None:
        self.parsed.add(path, message, self.places.position(node.start))
        self.parsed.broken.add(path)
        self.blanks.append((written.start, written.end))

    def _note(self, path: KeyPath, offset: int) -> None:
        self.parsed.positions.setdefault(path, self.places.position(offset))


def _refusal(node: Node, shape: Shape, num_values: int) -> str | None:
    """Why a value cannot even be set aside, if so."""
    if isinstance(node, ScalarNode) and not is_readable(node):
        return f"has an escape that is no text: {node.tokens[0].text}"
    if lacks_quotes(node, shape):
        return f"is {natural(node)}; expected a string in quotes"
    if isinstance(shape, SectionShape) and not fits(node, shape) and num_values > 1:
        return f"is {natural(node)!r}; expected a section"
    return None


def _num_values(node: Node) -> int:
    return len(node.items) if isinstance(node, ListNode) else 1


def _entry(node: Node) -> tuple[str, Node] | None:
    """Key and value of a map entry."""
    fields = {field.name: field.value for field in node.fields} if isinstance(node, MessageNode) else {}
    key = natural(fields["key"]) if "key" in fields else None
    if set(fields) != {"key", "value"} or not isinstance(key, str):
        return None
    return key, fields["value"]
