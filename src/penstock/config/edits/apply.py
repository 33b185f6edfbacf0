"""Edits -> changed data."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from penstock.config.edits.places import Place, find_places
from penstock.config.edits.steps import EditError, read_steps, split_edit
from penstock.config.edits.values import value_for
from penstock.config.errors import Problem
from penstock.config.paths import KeyPath
from penstock.config.section import Section

Edits = Sequence[str | tuple[str, Any]] | Mapping[str, Any]
"""PATH=VALUE texts and pairs of path and value, applied in order; or a mapping from path to value."""


@dataclass(slots=True)
class Edited:
    """What edits did: the places they set, and the edits that could not be applied."""

    problems: list[Problem] = field(default_factory=list)
    paths: set[KeyPath] = field(default_factory=set)

    def covers(self, path: KeyPath) -> bool:
        """Whether the value at a path comes from an edit and not from the file."""
        return any(path[:length] in self.paths for length in range(1, len(path) + 1))


def edit_data(root: type[Section], data: dict[str, Any], edits: Edits) -> Edited:
    """Applies edits to the data of a root section, in place."""
    edited = Edited()
    for edit in edits.items() if isinstance(edits, Mapping) else edits:
        path = edit if isinstance(edit, str) else edit[0]
        try:
            path, value = split_edit(edit) if isinstance(edit, str) else edit
            for place in find_places(root, data, read_steps(path)):
                _set(place, value)
                edited.paths.add(place.path)
        except EditError as error:
            edited.problems.append(Problem(path, str(error)))
    return edited


def _set(place: Place, value: Any) -> None:
    """Puts a value at a place: a text takes the type of the field, null removes the key."""
    if value is None or (value == "null" and not place.must_be_text):
        place.remove()
    else:
        place.put(value_for(value, place.shape) if isinstance(value, str) else deepcopy(value))
