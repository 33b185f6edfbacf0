"""The places of the data that a path means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.config.edits.conditions import matching
from penstock.config.edits.steps import Condition, EditError, Index, Key, Slice, Step, show_steps
from penstock.config.nearest import hint, nearest_name
from penstock.config.paths import KeyPath, format_path
from penstock.config.section import Section
from penstock.config.shape import AnyShape, ListShape, MapShape, ScalarShape, SectionShape, Shape, fields_of

_FREE = AnyShape()


@dataclass(frozen=True, slots=True)
class Place:
    """One slot of the data: a key of a mapping, or an index of a list.

    `owner` is the section that the slot belongs to, if any; `is_one_of_many` says that the path may mean
    several slots, so that those where it does not apply are passed over.
    """

    holder: Any
    key: str | int
    shape: Shape
    path: KeyPath
    owner: type[Section] | None = None
    is_one_of_many: bool = False

    @property
    def must_be_text(self) -> bool:
        """Whether every word is a text here, `null` too: of a field that may be absent it says so."""
        if not isinstance(self.shape, ScalarShape) or self.shape.type is not str:
            return False
        return self.owner is None or fields_of(self.owner)[str(self.key)].default is not None

    def put(self, value: Any) -> None:
        """Sets the value; other members of its one-of group go."""
        for other in self.rivals():
            self.holder.pop(other, None)
        self.holder[self.key] = value

    def remove(self) -> None:
        """Takes a key out of its section."""
        if not isinstance(self.holder, dict):
            raise EditError("is null; an entry of a list cannot be removed")
        self.holder.pop(self.key, None)

    def rivals(self) -> list[str]:
        """The keys of other members of its one-of groups that are present."""
        if self.owner is None:
            return []
        fields = fields_of(self.owner)
        name = fields[str(self.key)].name
        groups = [group for group in self.owner.one_of.values() if name in group]
        members = {member for group in groups for member in group if member != name}
        return [key for key, field in fields.items() if field.name in members and key in self.holder]

    def open(self) -> Any:
        """What the slot holds, to go on into. A missing section is created, an entry of a list never."""
        is_list = isinstance(self.shape, ListShape)
        value = self.holder.get(self.key) if isinstance(self.holder, dict) else self.holder[self.key]
        if value is None:
            value = [] if is_list else {}
            self.put(value)
        if not isinstance(value, list if is_list else dict):
            raise EditError(f"goes through '{format_path(self.path)}', which is not {self.shape.words}")
        return value


def find_places(root: type[Section], data: Any, steps: tuple[Step, ...]) -> list[Place]:
    """Every slot that the path means. Raises EditError when it means none."""
    places = [Place({"": data}, "", SectionShape(root), ())]
    for number, step in enumerate(steps):
        rest = steps[number + 1 :]
        places = [found for place in places for found in _step(place, step, steps[:number], rest)]
        if not places:
            raise EditError(_nothing(steps[: number + 1]))
    return places


def _nothing(steps: tuple[Step, ...]) -> str:
    return f"matches nothing: no entry of '{show_steps(steps[:-1])}' has '{show_steps(steps[-1:])}'"


def _step(place: Place, step: Step, before: tuple[Step, ...], rest: tuple[Step, ...]) -> Sequence[Place]:
    if isinstance(step, Key):
        return _key(place, step, before, rest)
    if not isinstance(place.shape, ListShape):
        wrong = f"'{show_steps(before)}' is {place.shape.words}, not a list"
        raise EditError(f"goes wrong at '{show_steps((step,))}': {wrong}")
    entries = place.open()
    is_one_of_many = place.is_one_of_many or not isinstance(step, Index)
    return [
        Place(entries, index, place.shape.item, (*place.path, index), None, is_one_of_many)
        for index in _indices(entries, step, place.shape.item, show_steps(before))
    ]


def _key(place: Place, step: Key, before: tuple[Step, ...], rest: tuple[Step, ...]) -> Sequence[Place]:
    if not isinstance(place.shape, SectionShape | MapShape | AnyShape):
        raise EditError(f"goes wrong at '{step.name}': '{show_steps(before)}' is {place.shape.words}")
    owner = place.shape.section if isinstance(place.shape, SectionShape) else None
    shape: Shape = place.shape.value if isinstance(place.shape, MapShape) else _FREE
    if owner is not None:
        if step.name not in fields_of(owner):
            raise EditError(_unknown(owner, step, before, rest))
        shape = fields_of(owner)[step.name].shape
    holder = place.open()
    found = Place(holder, step.name, shape, (*place.path, step.name), owner, place.is_one_of_many)
    does_not_apply = found.is_one_of_many and step.name not in holder and found.rivals()
    return [] if does_not_apply else [found]


def _unknown(owner: type[Section], step: Key, before: tuple[Step, ...], rest: tuple[Step, ...]) -> str:
    known = list(fields_of(owner))
    near = nearest_name(step.name, known)
    if near is not None:
        return f"unknown path; did you mean '{show_steps((*before, Key(near), *rest))}'?"
    where = f" in '{show_steps(before)}'" if before else ""
    return f"unknown path: there is no '{step.name}'{where}; {hint(step.name, known)}"


def _indices(entries: list[Any], step: Index | Slice | Condition, item: Shape, place: str) -> list[int]:
    if isinstance(step, Index):
        if not -len(entries) <= step.index < len(entries):
            raise EditError(f"has no entry [{step.index}]: '{place}' has {len(entries)}")
        return [step.index % len(entries)]
    if isinstance(step, Slice):
        found = list(range(len(entries)))[step.start : step.stop]
        if not found:
            raise EditError(f"matches nothing: '{place}' has {len(entries)} entries")
        return found
    return matching(entries, step, item, place)
