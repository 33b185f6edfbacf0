"""The rows of a shuffle window, column by column."""

import math
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from penstock.config.sizes import GIB, MIB
from penstock.readers.columns import ArrowArray
from penstock.readers.order import Int64Array

_buffer: Any = pa.py_buffer
_CHUNK_BYTES = GIB
"""Joined columns have chunks of at most this size, since string offsets of Arrow end at 2 GiB."""


Spare = dict[tuple[Any, ...], NDArray[Any]]
"""A buffer of each type and shape, into which columns are permuted in turn: each leaves its own buffer to the next."""


def _permuted(values: NDArray[Any], order: Int64Array, out: NDArray[Any]) -> NDArray[Any]:
    if values.ndim == 1:
        from penstock.data.shuffle_kernels import gather

        gather(values, order, out)
    else:
        np.take(values, order, axis=0, out=out[: len(order)], mode="clip")
    return out


def _column_for(kind: pa.DataType, spare: Spare) -> "FixedColumn | JoinedColumn":
    """Numbers of whole bytes, which NumPy can copy, and lists of so many of them are of a fixed size."""
    number = kind
    if isinstance(kind, pa.FixedSizeListType) and kind.list_size:
        number = kind.value_type
    is_number = pt.is_integer(number) or pt.is_floating(number)
    if is_number or (pt.is_temporal(number) and number.bit_width in (32, 64)):
        return FixedColumn(kind, number, spare)
    return JoinedColumn()


class FixedColumn:
    """Numbers, or rows of equally many numbers, in an array that is used again and again."""

    def __init__(self, kind: pa.DataType, number: pa.DataType, spare: Spare) -> None:
        self._kind, self._number, self._spare = kind, number, spare
        shape = (kind.list_size,) if isinstance(kind, pa.FixedSizeListType) else ()
        self._values: NDArray[Any] = np.empty((0, *shape), f"u{number.bit_width // 8}")
        self.number_bytes, self.width = self._values.itemsize, math.prod(shape)
        self._num_rows = self._max_rows = 0
        self._valid: list[NDArray[np.bool_] | None] = [None, None]
        """Which rows, and which numbers, are not null; None, and no memory, where all are valid."""
        self._window: ArrowArray | None = None
        self._lent: weakref.ref[NDArray[Any]] | None = None
        """What the rows that were given out are views of; dead when all of them are gone."""

    @property
    def num_bytes(self) -> int:
        """With the bits that Arrow reads, an eighth of what tells nulls."""
        valid_bytes = sum(valid.nbytes + valid.size // 8 for valid in self._valid if valid is not None)
        return self._values[: self._num_rows].nbytes + valid_bytes

    def begin(self, num_rows: int) -> None:
        self._num_rows, self._max_rows, self._window, self._valid = 0, num_rows, None, [None, None]
        is_in_use = self._lent is not None and self._lent() is not None
        if len(self._values) < num_rows or is_in_use:
            self._values = np.empty((num_rows, *self._values.shape[1:]), self._values.dtype)

    def append(self, piece: ArrowArray) -> None:
        start, self._num_rows = self._num_rows, self._num_rows + len(piece)
        numbers, shape = piece, self._values.shape[1:]
        if shape:
            self._note_nulls(0, piece, start, ())
            numbers = piece.values.slice(piece.offset * self.width, len(piece) * self.width)
        self._note_nulls(1, numbers, start, shape)
        buffer = numbers.buffers()[1]
        if buffer is not None and len(numbers):
            dtype = self._values.dtype
            flat = np.frombuffer(buffer, dtype, len(numbers), numbers.offset * dtype.itemsize)
            self._values[start : self._num_rows] = flat.reshape(len(piece), *shape)

    def _note_nulls(self, index: int, array: ArrowArray, start: int, shape: tuple[int, ...]) -> None:
        if not array.null_count:
            return
        valid = self._valid[index]
        if valid is None:
            valid = self._valid[index] = np.ones((self._max_rows, *shape), np.bool_)
        found = array.is_valid().to_numpy(zero_copy_only=False).reshape(-1, *shape)
        valid[start : start + len(found)] = found

    def permute(self, order: Int64Array) -> None:
        self._window = None
        size = (self._values.dtype, self._values.shape)
        spare = self._spare.pop(size, None)
        out = np.empty_like(self._values) if spare is None else spare
        self._spare[size], self._values = self._values, _permuted(self._values, order, out)
        self._valid = [
            None
            if valid is None
            else _permuted(valid, order, np.empty((len(order), *valid.shape[1:]), np.bool_))
            for valid in self._valid
        ]

    def rows(self, start: int, end: int, as_views: bool) -> ArrowArray:
        if self._window is None:
            numbers = self._values[: self._num_rows]
            self._lent = weakref.ref(numbers)
            valid_rows, valid_numbers = (
                None if valid is None else _buffer(np.packbits(valid[: self._num_rows], bitorder="little"))
                for valid in self._valid
            )
            make: Any = pa.Array.from_buffers
            self._window = make(self._number, numbers.size, [valid_numbers, _buffer(numbers)])
            if self._values.ndim > 1:
                self._window = make(self._kind, self._num_rows, [valid_rows], children=[self._window])
        view = self._window.slice(start, end - start)
        return view if as_views else pa.concat_arrays([view])


class JoinedColumn:
    """Values of any type, joined into as few chunks as possible: Arrow draws from one chunk ten times faster
    than from several."""

    def __init__(self) -> None:
        self._pieces: list[ArrowArray] = []
        self._chunks: list[ArrowArray] = []
        self._starts = np.zeros(1, np.int64)
        self._order: Int64Array | None = None

    @property
    def num_bytes(self) -> int:
        """Without dictionaries: the reader has counted them, and each piece would count its own again."""
        return sum(own_bytes(part) for part in (*self._pieces, *self._chunks))

    def begin(self, num_rows: int) -> None:
        self._pieces, self._chunks, self._order = [], [], None

    def append(self, piece: ArrowArray) -> None:
        self._pieces.append(piece)

    def permute(self, order: Int64Array) -> None:
        self._order = order  # nothing moves: a permuted copy of texts would take as much again

    def rows(self, start: int, end: int, as_views: bool) -> ArrowArray:
        rows = np.arange(start, end) if self._order is None else self._order[start:end]
        if self._pieces:
            self._chunks = [pa.concat_arrays(group) for group in _groups(self._pieces, _CHUNK_BYTES)]
            self._starts = np.cumsum([0] + [len(chunk) for chunk in self._chunks])
        if len(self._chunks) == 1:
            return self._chunks[0].take(pa.array(rows))
        by_chunk = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[by_chunk], self._starts)
        drawn = [
            chunk.take(pa.array(rows[by_chunk[start:end]] - first))
            for chunk, first, start, end in zip(self._chunks, self._starts, cuts, cuts[1:], strict=False)
            if start < end
        ]
        positions = np.empty_like(by_chunk)
        positions[by_chunk] = np.arange(len(by_chunk))
        return pa.concat_arrays(drawn).take(pa.array(positions))


def _groups(pieces: list[ArrowArray], chunk_bytes: int) -> Iterator[list[ArrowArray]]:
    """The pieces, in groups that fit a chunk. The list is emptied, so that they are freed when they are joined."""
    group: list[ArrowArray] = []
    num_bytes = 0
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        if group and num_bytes + own_bytes(piece) > chunk_bytes:
            yield group
            group, num_bytes = [], 0
        group.append(piece)
        num_bytes += own_bytes(piece)
    if group:
        yield group


def own_bytes(array: ArrowArray) -> int:
    """Bytes of an array without its dictionary, which other arrays share."""
    own = array.indices if isinstance(array, pa.DictionaryArray) else array
    return int(own.nbytes)


_SLACK_BYTES = MIB


class RowStore:
    def __init__(self, schema: pa.Schema, max_rows: int) -> None:
        self._schema = schema
        self._max_rows = max_rows
        self._spare: Spare = {}
        self._columns: list[FixedColumn | JoinedColumn] = [
            _column_for(field.type, self._spare) for field in schema
        ]
        self.num_rows = 0

    def fill(self, pieces: Iterable[pa.RecordBatch]) -> None:
        self.num_rows = 0
        for column in self._columns:
            column.begin(self._max_rows)
        for piece in pieces:
            self.num_rows += piece.num_rows
            for column, array in zip(self._columns, piece.columns, strict=True):
                column.append(array)

    def permute(self, order: Int64Array) -> None:
        order = order.astype(np.uint32) if len(order) < 2**32 else order
        for column in self._columns:
            column.permute(order)

    def rows(self, start: int, end: int, as_views: bool = False) -> pa.RecordBatch:
        """Some rows, in the present order.

        As views they cost nothing, but each keeps the whole window: for consumers that let go of one batch before they
        take the next. A buffer that somebody still has views of when the next window comes is left to them.
        """
        # Whoever asks for the next window still has the last rows of this one in hand.
        as_views = as_views and end < self.num_rows
        return pa.RecordBatch.from_arrays(
            [column.rows(start, end, as_views) for column in self._columns], schema=self._schema
        )

    @property
    def num_bytes(self) -> int:
        return sum(part.nbytes for part in self._spare.values()) + sum(
            part.num_bytes for part in self._columns
        )


def window_bytes(schema: pa.Schema, num_rows: int, row_bytes: int) -> int:
    """What a store of so many rows takes at most, where rows take `row_bytes` in Arrow.

    Beside the rows: a byte per value that tells nulls, a spare buffer of each size, and what is not of a
    fixed width once more, since it exists twice while it is joined.
    """
    fixed = [column for field in schema if isinstance(column := _column_for(field.type, {}), FixedColumn)]
    null_bytes = sum(column.width + 1 for column in fixed)
    spare_bytes = sum(
        number_bytes * width
        for number_bytes, width in {(column.number_bytes, column.width) for column in fixed}
    )
    fixed_bytes = sum(column.number_bytes * column.width for column in fixed)
    joined_bytes = 0 if len(fixed) == len(schema) else max(0, row_bytes - fixed_bytes)
    return num_rows * (row_bytes + null_bytes + spare_bytes + joined_bytes) + _SLACK_BYTES


def warm() -> None:
    """Load and compile what the first window would have to wait for."""
    _permuted(np.zeros(1, np.uint64), np.zeros(1, np.uint32), np.zeros(1, np.uint64))
