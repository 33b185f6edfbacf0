"""Where two run files differ, key by key."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAMES = ("feature_name", "group_name", "tower_name")
"""Keys that name an item of a list, so that one that moved counts as the same."""
NOT_COMPARED = frozenset({"model_dir"})
"""Differs always, and says nothing."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One key, and its value in each run; None where a run does not have it."""

    key: str
    values: tuple[str | None, ...]


def differences(configs: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """The keys of which not all values are the same, in the order in which they are first met."""
    flat = [dict(flattened(config)) for config in configs]
    keys = dict.fromkeys(key for values in flat for key in values)
    found = [Difference(key, tuple(values.get(key) for values in flat)) for key in keys]
    return [
        difference
        for difference in found
        if len(set(difference.values)) > 1 and difference.key not in NOT_COMPARED
    ]


def flattened(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every value that holds no other, under the path to it."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from flattened(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from flattened(item, f"{key}[{name_of(item) or index}]")
    else:
        yield key, written(value)


def name_of(item: Any) -> str | None:
    """What an item of a list is called: by itself, or by the one section that it holds."""
    if not isinstance(item, Mapping):
        return None
    for holder in (item, *(inner for inner in item.values() if isinstance(inner, Mapping))):
        for key in NAMES:
            if key in holder:
                return str(holder[key])
    return None


def written(value: Any) -> str:
    """As a run file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return "{}" if value == {} else str(value)
