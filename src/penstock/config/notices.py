"""What a loaded section says about itself: fields that are ignored, old, or not available yet."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.config.markers import Ignored, Later, Legacy, Marker
from penstock.config.paths import KeyPath, format_path
from penstock.config.section import Section
from penstock.config.shape import fields_of


@dataclass(frozen=True, slots=True)
class Notice:
    """One written field that has something to say: why it is ignored, its new name, or what comes later.

    `harmless` says of what comes later that the run gives the same model without it.
    """

    path: KeyPath
    text: str
    harmless: bool = False

    def __str__(self) -> str:
        return f"{format_path(self.path)}: {self.text}"


@dataclass(frozen=True, slots=True)
class Notices:
    """All notices of a section, in the order of its fields."""

    ignored: tuple[Notice, ...] = ()
    legacy: tuple[Notice, ...] = ()
    later: tuple[Notice, ...] = ()

    def lines(self) -> list[str]:
        """What a user should read: each field once for all entries of a list."""
        old = [f"{place}: old name, use {new_name} instead" for place, new_name in _counted(self.legacy)]
        ignored = [f"{place}: ignored ({reason})" for place, reason in _counted(self.ignored)]
        without = [notice for notice in self.later if notice.harmless]
        return old + ignored + [f"{place}: {text}; going on without" for place, text in _counted(without)]


def notices(section: Section) -> Notices:
    """Collects what the markers of really written fields say."""
    ignored, legacy, later = [], [], []
    for path, marker in _written(section, ()):
        if isinstance(marker, Ignored):
            ignored.append(Notice(path, marker.reason))
        elif isinstance(marker, Legacy):
            legacy.append(Notice(path, marker.new_name))
        elif isinstance(marker, Later):
            later.append(Notice(path, f"{marker.what} is not available yet", marker.harmless))
    return Notices(tuple(ignored), tuple(legacy), tuple(later))


def _written(section: Section, path: KeyPath) -> Iterator[tuple[KeyPath, Marker]]:
    for key, field in fields_of(type(section)).items():
        value = getattr(section, field.name)
        if field.name in section.model_fields_set and value is not None:
            for marker in field.markers:
                if not isinstance(marker, Later) or marker.speaks(value, field.default):
                    yield (*path, key), marker
            yield from _inside(value, (*path, key))


def _inside(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Marker]]:
    if isinstance(value, Section):
        yield from _written(value, path)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _inside(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _inside(item, (*path, key))


def _counted(found: Iterable[Notice]) -> Iterator[tuple[str, str]]:
    """Places without their indices, each once, with how often they occur."""
    counts = Counter((re.sub(r"\[\d+\]", "[]", format_path(notice.path)), notice.text) for notice in found)
    for (place, text), count in counts.items():
        yield (f"{place} ({count} times)" if count > 1 else place), text
