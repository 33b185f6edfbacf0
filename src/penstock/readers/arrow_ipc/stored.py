"""How the columns of a record batch lie in its body: which buffers and children belong to which type."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_VIEW_BUFFERS = 2


@dataclass(frozen=True, slots=True)
class Stored:
    """One array in a body; lists, maps and structs have others inside."""

    type: Any
    node: int
    """Its number among all arrays of the body."""
    buffers: tuple[int, ...]
    """The numbers of its own buffers."""
    children: tuple["Stored", ...] = ()
    dictionary_id: int | None = None

    def all_buffers(self) -> Iterator[int]:
        """Its own buffers, and those of all arrays inside."""
        yield from self.buffers
        for child in self.children:
            yield from child.all_buffers()


class StoredColumns:
    """The columns of the record batches of one file; those with the same numbers of view buffers lie alike."""

    def __init__(self, types: Sequence[Any], dictionary_ids: Sequence[Sequence[int]]) -> None:
        self._types = types
        self._dictionary_ids = dictionary_ids
        self._known: dict[tuple[int, ...], list[Stored]] = {}

    def of(self, num_view_buffers: tuple[int, ...]) -> list[Stored]:
        """All columns, in the order of the file."""
        if num_view_buffers not in self._known:
            layout = _Layout(num_view_buffers)
            self._known[num_view_buffers] = [
                layout.next(value_type, iter(ids))
                for value_type, ids in zip(self._types, self._dictionary_ids, strict=True)
            ]
        return self._known[num_view_buffers]


class _Layout:
    """Gives arrays their places: parents before children, columns one behind the other."""

    def __init__(self, num_view_buffers: Sequence[int]) -> None:
        self._views = iter(num_view_buffers)
        self._num_nodes = 0
        self._num_buffers = 0

    def next(self, value_type: Any, ids: Iterator[int]) -> Stored:
        """The array of the next type."""
        if isinstance(value_type, pa.BaseExtensionType):
            storage = self.next(value_type.storage_type, ids)
            return Stored(value_type, storage.node, (), (storage,))
        node, self._num_nodes = self._num_nodes, self._num_nodes + 1
        first, self._num_buffers = self._num_buffers, self._num_buffers + self._count(value_type)
        buffers = tuple(range(first, self._num_buffers))
        if pa.types.is_dictionary(value_type):
            return Stored(value_type, node, buffers, dictionary_id=next(ids))
        children = [value_type.field(index).type for index in range(value_type.num_fields)]
        return Stored(value_type, node, buffers, tuple(self.next(child, ids) for child in children))

    def _count(self, value_type: Any) -> int:
        if is_view(value_type):
            return _VIEW_BUFFERS + next(self._views, 0)
        return _num_own_buffers(value_type)


def is_view(value_type: Any) -> bool:
    """Whether values are views of texts that lie elsewhere."""
    return pa.types.is_string_view(value_type) or pa.types.is_binary_view(value_type)


def is_text(value_type: Any) -> bool:
    """Whether values lie one behind the other, with offsets."""
    types = pa.types
    is_narrow = types.is_string(value_type) or types.is_binary(value_type)
    return is_narrow or types.is_large_string(value_type) or types.is_large_binary(value_type)


def _num_own_buffers(value_type: Any) -> int:
    types = pa.types
    if types.is_null(value_type) or types.is_run_end_encoded(value_type):
        return 0
    if types.is_struct(value_type) or types.is_fixed_size_list(value_type):
        return 1
    if types.is_union(value_type):
        return 2 if value_type.mode == "dense" else 1
    is_list_view = types.is_list_view(value_type) or types.is_large_list_view(value_type)
    return 3 if is_text(value_type) or is_list_view else 2
