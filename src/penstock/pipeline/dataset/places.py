"""What a saved place of a Dataset looks like, so that anything else is refused as what it is."""

from collections.abc import Mapping
from typing import Any

from penstock.config.errors import CheckpointError
from penstock.pipeline.dataset.arguments import kind_of

_NUMBERS = ("first_epoch", "given_in_epoch", "given_in_all")
_ROW_NUMBERS = ("epoch", "row")
_ORDER_KEYS = {"files", "blocks", "seed", "shard"}


def check_place(state: Any) -> None:
    """Refuse what `state_dict` of a Dataset never gave."""
    problem = _problem(state)
    if problem is not None:
        raise CheckpointError(f"this is no place of a Dataset: {problem}; load what state_dict() of one gave")


def _problem(state: Any) -> str | None:
    if not isinstance(state, Mapping):
        return f"it is {kind_of(state)}"
    if not {*_NUMBERS, "first_rows", "rows"} <= state.keys():
        return f"it has no '{next(key for key in (*_NUMBERS, 'first_rows', 'rows') if key not in state)}'"
    rows = state["rows"]
    if not isinstance(rows, Mapping) or not {*_ROW_NUMBERS, "done", "order"} <= rows.keys():
        return "its 'rows' are no position"
    for key, value in [*((key, state[key]) for key in _NUMBERS), *((key, rows[key]) for key in _ROW_NUMBERS)]:
        if not isinstance(value, int) or value < 0:
            return f"its '{key}' is {value!r}, and no number from 0 on"
    if not isinstance(rows["order"], Mapping) or not rows["order"].keys() >= _ORDER_KEYS:
        return "its 'order' does not say which rows were read"
    if rows["done"] is not None and not isinstance(rows["done"], Mapping):
        return f"its 'done' is {rows['done']!r}"
    return None
