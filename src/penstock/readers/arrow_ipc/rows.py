"""Rows of columns, made from the ranges of buffers that they take; and how many bytes that would be."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.readers.arrow_ipc.body import Body
from penstock.readers.arrow_ipc.messages import BatchMessage
from penstock.readers.arrow_ipc.stored import Stored, is_text, is_view

_BITS = 8
_FIXED_BUFFERS = 2
"""Of values of fixed width, views among them: validity and values."""
_VIEW_BYTES = 16
_LONGEST_INLINE = 12
"""Shorter texts stand in their view."""

Words = Callable[[int, Any], Any]
"""From the id of a dictionary and the type of its values to these."""


class RowReader:
    """Rows of the arrays of one record batch."""

    def __init__(self, body: Body, message: BatchMessage, words: Words) -> None:
        self._body = body
        self._null_counts = message.null_counts
        self._words = words

    def rows(self, stored: Stored, first_row: int, end_row: int) -> Any:
        """Some rows of an array."""
        value_type, num_rows = stored.type, end_row - first_row
        if isinstance(value_type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(
                value_type, self.rows(stored.children[0], first_row, end_row)
            )
        if pa.types.is_null(value_type):
            return pa.nulls(num_rows)
        if is_text(value_type) or _is_list(value_type):
            return self._with_offsets(stored, first_row, end_row)
        if is_view(value_type):
            return self._with_views(stored, first_row, end_row)
        if pa.types.is_struct(value_type) or pa.types.is_fixed_size_list(value_type):
            size = _items_per_row(value_type)
            children = [self.rows(child, size * first_row, size * end_row) for child in stored.children]
            validity = self._validity(stored, first_row, end_row)
            return pa.Array.from_buffers(value_type, num_rows, [validity], children=children)
        if stored.dictionary_id is not None:
            numbers = self._fixed(stored, value_type.index_type, first_row, end_row)
            words = self._words(stored.dictionary_id, value_type.value_type)
            return pa.DictionaryArray.from_arrays(numbers, words, ordered=value_type.ordered)
        if stored.children or len(stored.buffers) != _FIXED_BUFFERS:
            raise ValueError(f"columns of type {value_type} are not known")
        return self._fixed(stored, value_type, first_row, end_row)

    def num_bytes(self, stored: Stored, first_row: int, end_row: int) -> int:
        """What these rows take, from the ends of their offsets alone; views must be read."""
        num_rows = end_row - first_row
        validity_bytes = _bytes_of_bits(num_rows) if self._has_nulls(stored) else 0
        if is_text(stored.type) or _is_list(stored.type):
            first, end = self._ends(stored, first_row, end_row)
            offset_bytes: int = _offset_type(stored.type).itemsize * (num_rows + 1)
            item_bytes = self.num_bytes(stored.children[0], first, end) if stored.children else end - first
            return validity_bytes + offset_bytes + item_bytes
        if is_view(stored.type):
            views, _ = self._views(stored, first_row, end_row)
            ranges = _view_ranges(views, len(stored.buffers) - _FIXED_BUFFERS)
            return validity_bytes + views.nbytes + sum(end - first for first, end in ranges)
        size = _items_per_row(stored.type)
        children_bytes = sum(
            self.num_bytes(child, size * first_row, size * end_row) for child in stored.children
        )
        is_leaf = not stored.children and not pa.types.is_null(stored.type)
        return (
            validity_bytes
            + children_bytes
            + (_bytes_of_bits(num_rows * stored.type.bit_width) if is_leaf else 0)
        )

    def _fixed(self, stored: Stored, value_type: Any, first_row: int, end_row: int) -> Any:
        num_rows, width_bits = end_row - first_row, value_type.bit_width
        if width_bits == 1:
            data = self._bits(stored.buffers[1], first_row, end_row)
        else:
            width_bytes = width_bits // _BITS
            data = self._body.read(stored.buffers[1], first_row * width_bytes, num_rows * width_bytes)
        return pa.Array.from_buffers(value_type, num_rows, [self._validity(stored, first_row, end_row), data])

    def _with_offsets(self, stored: Stored, first_row: int, end_row: int) -> Any:
        """Texts, lists and maps; their items are read from the first to the last, and counted anew."""
        dtype, num_rows = _offset_type(stored.type), end_row - first_row
        data = self._body.read(stored.buffers[1], first_row * dtype.itemsize, (num_rows + 1) * dtype.itemsize)
        offsets = _numbers(data, dtype)
        if (offsets[1:] < offsets[:-1]).any():
            raise ValueError(f"offsets of a {stored.type} column go backwards")
        first, end = int(offsets[0]), int(offsets[-1])
        buffers = [self._validity(stored, first_row, end_row), pa.py_buffer(offsets - dtype.type(first))]
        if stored.children:
            children = [self.rows(child, first, end) for child in stored.children]
            return pa.Array.from_buffers(stored.type, num_rows, buffers, children=children)
        buffers.append(self._body.read(stored.buffers[2], first, end - first))
        return pa.Array.from_buffers(stored.type, num_rows, buffers)

    def _with_views(self, stored: Stored, first_row: int, end_row: int) -> Any:
        """Texts as views; of each buffer that they point to, what lies between the first and the last of them."""
        views, validity = self._views(stored, first_row, end_row)
        texts = []
        for index, (first, end) in enumerate(_view_ranges(views, len(stored.buffers) - _FIXED_BUFFERS)):
            texts.append(self._body.read(stored.buffers[_FIXED_BUFFERS + index], first, end - first))
            views[_shows(views, index), 3] -= first
        buffers = [validity, pa.py_buffer(cast(Any, views)), *texts]
        return pa.Array.from_buffers(stored.type, end_row - first_row, buffers)

    def _views(self, stored: Stored, first_row: int, end_row: int) -> tuple[NDArray[np.int32], Any]:
        """Length, prefix, buffer and offset of each text, all 0 where it is null; and the bits that say so."""
        num_rows = end_row - first_row
        data = self._body.read(stored.buffers[1], first_row * _VIEW_BYTES, num_rows * _VIEW_BYTES)
        views = _numbers(data, np.int32).reshape(-1, _VIEW_BYTES // 4).copy()
        validity = self._validity(stored, first_row, end_row)
        if validity is not None:
            is_valid = np.unpackbits(_numbers(validity, np.uint8), count=num_rows, bitorder="little")
            views[is_valid == 0] = 0
        return views, validity

    def _ends(self, stored: Stored, first_row: int, end_row: int) -> tuple[int, int]:
        dtype = _offset_type(stored.type)
        first, end = (
            int(_numbers(self._body.read(stored.buffers[1], row * dtype.itemsize, dtype.itemsize), dtype)[0])
            for row in (first_row, end_row)
        )
        if not 0 <= first <= end:
            raise ValueError(f"offsets of a {stored.type} column go backwards")
        return first, end

    def _validity(self, stored: Stored, first_row: int, end_row: int) -> Any:
        return self._bits(stored.buffers[0], first_row, end_row) if self._has_nulls(stored) else None

    def _bits(self, buffer: int, first: int, end: int) -> Any:
        """Some bits of a buffer, the first one at the start of a byte."""
        start = first // _BITS
        data = self._body.read(buffer, start, _bytes_of_bits(end) - start)
        if first % _BITS == 0:
            return data
        bits = np.unpackbits(_numbers(data, np.uint8), bitorder="little")[first % _BITS :]
        return pa.py_buffer(cast(Any, np.packbits(bits, bitorder="little")))

    def _has_nulls(self, stored: Stored) -> bool:
        return bool(stored.buffers and self._null_counts[stored.node])


def _numbers(data: Any, dtype: Any) -> Any:
    return np.frombuffer(data, dtype)


def _shows(views: NDArray[np.int32], buffer: int) -> Any:
    """Which views show a text of a buffer."""
    return np.logical_and(views[:, 0] > _LONGEST_INLINE, views[:, 2] == buffer)


def _view_ranges(views: NDArray[np.int32], num_buffers: int) -> list[tuple[int, int]]:
    """Of each buffer of texts, the range that views show."""
    ranges = []
    for buffer in range(num_buffers):
        shown = views[_shows(views, buffer)].astype(np.int64)
        ends = shown[:, 3] + shown[:, 0]
        ranges.append((int(shown[:, 3].min()), int(ends.max())) if len(shown) else (0, 0))
    return ranges


def _is_list(value_type: Any) -> bool:
    types = pa.types
    return types.is_list(value_type) or types.is_large_list(value_type) or types.is_map(value_type)


def _items_per_row(value_type: Any) -> int:
    return int(value_type.list_size) if pa.types.is_fixed_size_list(value_type) else 1


def _bytes_of_bits(num_bits: int) -> int:
    return -(-num_bits // _BITS)


def _offset_type(value_type: Any) -> Any:
    types = pa.types
    is_large = (
        types.is_large_string(value_type)
        or types.is_large_binary(value_type)
        or types.is_large_list(value_type)
    )
    return np.dtype(np.int64 if is_large else np.int32)
