"""What a loaded section reports about itself: fields that are ignored, old, or not available yet."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import KeyPath, Problem, format_path
from penstock.config.section import Ignored, Later, Legacy, Marker, Section
from penstock.config.shape import fields_of


@dataclass(frozen=True, slots=True)
class Notices:
    """Written fields with a marker, in the order of the section.

    A message is the reason why a field is ignored, the new name of an old one, or what is not available yet;
    without what is `harmless` the run gives the same model.
    """

    ignored: tuple[Problem, ...] = ()
    legacy: tuple[Problem, ...] = ()
    later: tuple[Problem, ...] = ()
    harmless: tuple[Problem, ...] = ()

    def lines(self) -> list[str]:
        """What a user should read: each field once for all entries of a list."""
        return [
            *(f"{path}: old name, use {new_name} instead" for path, new_name in _counted(self.legacy)),
            *(f"{path}: ignored ({reason})" for path, reason in _counted(self.ignored)),
            *(f"{path}: {message}; going on without" for path, message in _counted(self.harmless)),
        ]


def notices(section: Section) -> Notices:
    """Collects the markers of the fields that were really written."""
    ignored: list[Problem] = []
    legacy: list[Problem] = []
    later: list[Problem] = []
    harmless: list[Problem] = []
    for path, marker in _markers(section, ()):
        if isinstance(marker, Ignored):
            ignored.append(Problem(path, marker.reason))
        elif isinstance(marker, Legacy):
            legacy.append(Problem(path, marker.new_name))
        elif isinstance(marker, Later):
            found = harmless if marker.harmless else later
            found.append(Problem(path, f"{marker.what} is not available yet"))
    return Notices(tuple(ignored), tuple(legacy), tuple(later), tuple(harmless))


def _markers(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Marker]]:
    if isinstance(value, Section):
        for key, field in fields_of(type(value)).items():
            item = getattr(value, field.name)
            if field.name in value.model_fields_set and item is not None:
                for marker in field.markers:
                    if not isinstance(marker, Later) or marker.is_asked_for(item, field.default):
                        yield (*path, key), marker
                yield from _markers(item, (*path, key))
    elif isinstance(value, list | tuple | dict):
        items: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for part, item in items:
            yield from _markers(item, (*path, part))


def _counted(found: Iterable[Problem]) -> Iterator[tuple[str, str]]:
    """Paths without their indices, each once, with how often they occur."""
    counts = Counter((re.sub(r"\[\d+\]", "[]", format_path(each.path)), each.message) for each in found)
    for (path, message), count in counts.items():
        yield (f"{path} ({count} times)" if count > 1 else path), message
