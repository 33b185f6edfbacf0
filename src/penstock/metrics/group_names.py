"""From the key of a group back to its id: integers are their own keys, of other ids some are remembered."""

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.metrics.grouped_keys import NULL_KEY, group_keys
from penstock.metrics.inputs import as_array

MOST_ROWS = 1 << 16
"""Ids that are not integers are remembered of so many rows: large groups are among the first rows."""

NULL = "null"
"""The name of the group of rows without an id."""


class GroupNames:
    """Ids of groups, as far as they are known."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._room = most_rows
        self._is_signed: bool | None = None  # of integers
        self._ids: list[Any] = []  # others, as Arrow arrays

    def see(self, groups: Any) -> None:
        """Remember what can be needed of the ids of one batch; of integers only whether they have a sign."""
        if self._is_signed is not None or not self._room:
            return
        ids = _as_arrow(groups)
        if pa.types.is_integer(ids.type):
            self._is_signed = pa.types.is_signed_integer(ids.type)
            return
        # Taking copies the ids, so that they do not keep a whole batch alive.
        self._ids.append(ids.take(pa.array(np.arange(min(self._room, len(ids))))))
        self._room -= len(self._ids[-1])

    def joined(self, other: "GroupNames") -> "GroupNames":
        """What both know, up to the rows that one may remember."""
        both = GroupNames(self._room)
        both._is_signed, both._ids = self._is_signed, list(self._ids)
        if both._is_signed is None:
            both._is_signed = other._is_signed
        for ids in other._ids:
            both.see(ids)
        return both

    def of(self, keys: list[int]) -> list[int | str]:
        """The id of each key; the key itself in hexadecimal digits where the id was not seen."""
        if self._is_signed is not None:
            return [NULL if key == NULL_KEY else _integer(key, self._is_signed) for key in keys]
        known: dict[int, str] = {}
        for ids in self._ids:
            ids_of_keys = group_keys(ids, "groups")
            wanted = np.flatnonzero(np.isin(ids_of_keys, np.array(keys, np.uint64)))
            for key, value in zip(ids_of_keys[wanted].tolist(), ids.take(pa.array(wanted)), strict=True):
                known.setdefault(key, str(value.as_py()) if value.is_valid else NULL)
        return [known.get(key, f"{key:#018x}") for key in keys]


def _integer(key: int, is_signed: bool) -> int:
    return key - 2**64 if is_signed and key >= 2**63 else key


def _as_arrow(groups: Any) -> Any:
    if isinstance(groups, pa.ChunkedArray):
        groups = groups.combine_chunks()
    if isinstance(groups, pa.DictionaryArray):
        return groups.dictionary_decode()
    if isinstance(groups, pa.Array):
        return groups
    if isinstance(groups, list | tuple):
        return pa.array(groups)
    values = np.ravel(as_array(groups))
    return pa.array(values.astype(np.int8) if values.dtype == np.bool_ else values)
