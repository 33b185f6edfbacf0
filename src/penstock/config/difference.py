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
    key: str
    values: tuple[str | None, ...]


def differences(configs: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """The keys of which not all values are the same, in the order in which they are first met."""
    flat = [dict(flattened(config)) for config in configs]
    keys = dict.fromkeys(key for values in flat for key in values if key not in NOT_COMPARED)
    found = [Difference(key, tuple(values.get(key) for values in flat)) for key in keys]
    return [difference for difference in found if len(set(difference.values)) > 1]


def flattened(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from flattened(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from flattened(item, f"{key}[{_name_of(item) or index}]")
    else:
        yield key, _written(value)


def _name_of(item: Any) -> str | None:
    """What an item of a list is called: by itself, or by the one section that it holds."""
    if not isinstance(item, Mapping):
        return None
    holders = (item, *(inner for inner in item.values() if isinstance(inner, Mapping)))
    return next((str(holder[key]) for holder in holders for key in NAMES if key in holder), None)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return "{}" if value == {} else str(value)


MAX_NAMED = 5
"""More are counted only: the line is read on a terminal."""
INPUTS = frozenset({"train_input_path", "eval_input_path"})
"""Other files are what new data are."""
OF_THE_START = frozenset({"train_config.fine_tune_checkpoint", "train_config.fine_tune_ckpt_param_map"})
"""What a run began with, which decides nothing when it goes on."""


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any], new_data: bool = False) -> str | None:
    """How many keys of two run files differ, and which, with both values.

    None where nothing differs, and where nothing is known of `before`.
    """
    passed_over = OF_THE_START | INPUTS if new_data else OF_THE_START
    found = [each for each in differences([before, now]) if each.key not in passed_over] if before else []
    if not found:
        return None
    named, num_more = [], len(found) - MAX_NAMED
    for difference in found[:MAX_NAMED]:
        before_value, value = ("not set" if value is None else value for value in difference.values)
        named.append(f"{difference.key} {before_value} -> {value}")
    more = f" and {num_more:,} more" if num_more > 0 else ""
    return f"{len(found):,} changed setting{'s' * (len(found) > 1)}: {', '.join(named)}{more}"
