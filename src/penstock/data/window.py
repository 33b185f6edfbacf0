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
from penstock.readers.order import Int64Array

ArrowArray = Any
"""pa.Array: its type stubs know fewer methods than the classes have."""

_buffer: Any = pa.py_buffer
_CHUNK_BYTES = GIB
"""Joined columns have chunks of at most this size, since string offsets of Arrow end at 2 GiB."""


class BufferPool:
    """A buffer of each size, into which columns are permuted in turn: each leaves its own buffer to the next."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[Any, ...], NDArray[Any]] = {}

    @property
    def num_bytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def exchange(self, values: NDArray[Any], order: Int64Array) -> NDArray[Any]:
        """The rows of an array in another order, in a pooled buffer; the array goes to the pool."""
        size = (values.dtype, values.shape)
        buffer = self._buffers.pop(size, None)
        if buffer is None:
            buffer = np.empty_like(values)
        _gather(values, order, buffer)
        self._buffers[size] = values
        return buffer


def _gather(values: NDArray[Any], order: Int64Array, out: NDArray[Any]) -> None:
    if values.ndim == 1:
        from penstock.data.shuffle_kernels import gather

        gather(values, order, out)
    else:
        np.take(values, order, axis=0, out=out[: len(order)], mode="clip")


def _permuted(values: NDArray[Any], order: Int64Array) -> NDArray[Any]:
    out = np.empty((len(order), *values.shape[1:]), values.dtype)
    _gather(values, order, out)
    return out


def _column_for(kind: pa.DataType, pool: BufferPool) -> "FixedColumn | JoinedColumn":
    if _has_numbers(kind):
        return FixedColumn(kind, (), pool)
    if isinstance(kind, pa.FixedSizeListType) and _has_numbers(kind.value_type) and kind.list_size:
        return FixedColumn(kind, (kind.list_size,), pool)
    return JoinedColumn()


def _has_numbers(kind: pa.DataType) -> bool:
    """Whether the values are numbers of whole bytes that NumPy can copy."""
    return bool(
        pt.is_integer(kind) or pt.is_floating(kind) or (pt.is_temporal(kind) and kind.bit_width in (32, 64))
    )


class FixedColumn:
    """Numbers, or rows of equally many numbers, in an array that is used again and again."""

    def __init__(self, kind: pa.DataType, shape: tuple[int, ...], pool: BufferPool) -> None:
        self._kind = kind
        self._pool = pool
        self._number_kind = kind.value_type if isinstance(kind, pa.FixedSizeListType) else kind
        self._values: NDArray[Any] = np.empty((0, *shape), f"u{self._number_kind.bit_width // 8}")
        self.number_bytes = self._values.itemsize
        self.width = math.prod(shape)
        self.size = (self.number_bytes, self.width)
        self._num_rows = 0
        self._valid_rows = _Validity(())
        self._valid_numbers = _Validity(shape)
        self._window: ArrowArray | None = None
        self._lent: weakref.ref[NDArray[Any]] | None = None
        """What the rows that were given out are views of; dead when all of them are gone."""

    @property
    def num_bytes(self) -> int:
        values_bytes = self._values[: self._num_rows].nbytes
        return values_bytes + self._valid_rows.num_bytes + self._valid_numbers.num_bytes

    def begin(self, num_rows: int) -> None:
        self._num_rows, self._window = 0, None
        self._valid_rows.begin(num_rows)
        self._valid_numbers.begin(num_rows)
        is_in_use = self._lent is not None and self._lent() is not None
        if len(self._values) < num_rows or is_in_use:
            self._values = np.empty((num_rows, *self._values.shape[1:]), self._values.dtype)

    def append(self, piece: ArrowArray) -> None:
        start, self._num_rows = self._num_rows, self._num_rows + len(piece)
        numbers = piece
        if self._values.ndim > 1:
            width = self._values.shape[1]
            self._valid_rows.put(piece, start)
            numbers = piece.values.slice(piece.offset * width, len(piece) * width)
        self._valid_numbers.put(numbers, start)
        buffer = numbers.buffers()[1]
        if buffer is not None and len(numbers):
            dtype = self._values.dtype
            flat = np.frombuffer(buffer, dtype, len(numbers), numbers.offset * dtype.itemsize)
            self._values[start : self._num_rows] = flat.reshape(len(piece), *self._values.shape[1:])

    def permute(self, order: Int64Array) -> None:
        self._window = None
        self._values = self._pool.exchange(self._values, order)
        self._valid_rows.permute(order)
        self._valid_numbers.permute(order)

    def rows(self, start: int, end: int, as_views: bool) -> ArrowArray:
        if self._window is None:
            self._window = self._as_arrow()
        view = self._window.slice(start, end - start)
        return view if as_views else pa.concat_arrays([view])

    def _as_arrow(self) -> ArrowArray:
        numbers = self._values[: self._num_rows]
        self._lent = weakref.ref(numbers)
        valid_numbers = self._valid_numbers.bits(self._num_rows)
        flat = pa.Array.from_buffers(self._number_kind, numbers.size, [valid_numbers, _buffer(numbers)])
        if self._values.ndim == 1:
            return flat
        valid_rows = self._valid_rows.bits(self._num_rows)
        make: Any = pa.Array.from_buffers
        return make(self._kind, self._num_rows, [valid_rows], children=[flat])


class _Validity:
    """Which values are not null; takes no memory until there is a null."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._valid: NDArray[np.bool_] | None = None
        self._num_rows = 0

    @property
    def num_bytes(self) -> int:
        """With the bits that Arrow reads, an eighth of that."""
        return 0 if self._valid is None else self._valid.nbytes + self._valid.size // 8

    def begin(self, num_rows: int) -> None:
        self._num_rows, self._valid = num_rows, None

    def put(self, array: ArrowArray, start: int) -> None:
        if not array.null_count:
            return
        if self._valid is None:
            self._valid = np.ones((self._num_rows, *self._shape), np.bool_)
        valid = array.is_valid().to_numpy(zero_copy_only=False).reshape(-1, *self._shape)
        self._valid[start : start + len(valid)] = valid

    def permute(self, order: Int64Array) -> None:
        if self._valid is not None:
            self._valid = _permuted(self._valid, order)

    def bits(self, num_rows: int) -> Any:
        """As Arrow has them; None where all are valid."""
        if self._valid is None:
            return None
        return _buffer(np.packbits(self._valid[:num_rows], bitorder="little"))


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

    def _join(self) -> None:
        self._chunks = [pa.concat_arrays(group) for group in _groups(self._pieces, _CHUNK_BYTES)]
        self._starts = np.cumsum([0] + [len(chunk) for chunk in self._chunks])

    def permute(self, order: Int64Array) -> None:
        """Nothing moves: a permuted copy of texts would take as much again."""
        self._order = order

    def rows(self, start: int, end: int, as_views: bool) -> ArrowArray:
        return self._take(np.arange(start, end) if self._order is None else self._order[start:end])

    def _take(self, rows: Int64Array) -> ArrowArray:
        if self._pieces:
            self._join()
        if len(self._chunks) == 1:
            return self._chunks[0].take(pa.array(rows))
        by_chunk = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[by_chunk], self._starts)
        drawn = [
            chunk.take(pa.array(rows[by_chunk[start:end]] - first))
            for chunk, first, start, end in zip(self._chunks, self._starts, cuts, cuts[1:], strict=False)
            if start < end
        ]
        places = np.empty_like(by_chunk)
        places[by_chunk] = np.arange(len(by_chunk))
        return pa.concat_arrays(drawn).take(pa.array(places))


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
    """The rows of one window, in columns."""

    def __init__(self, schema: pa.Schema, max_rows: int) -> None:
        self._schema = schema
        self._max_rows = max_rows
        self._pool = BufferPool()
        self._columns: list[FixedColumn | JoinedColumn] = [
            _column_for(field.type, self._pool) for field in schema
        ]
        self.num_rows = 0

    def fill(self, pieces: Iterable[pa.RecordBatch]) -> None:
        """Hold these rows instead of those before; each piece is copied before the next is asked for."""
        self.num_rows = 0
        for column in self._columns:
            column.begin(self._max_rows)
        for piece in pieces:
            self.num_rows += piece.num_rows
            for column, array in zip(self._columns, piece.columns, strict=True):
                column.append(array)

    def permute(self, order: Int64Array) -> None:
        """Bring the rows into an order: those at these places, one after the other."""
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
        return self._pool.num_bytes + sum(column.num_bytes for column in self._columns)


def window_bytes(schema: pa.Schema, num_rows: int, row_bytes: int) -> int:
    """What a store of so many rows takes at most, where rows take `row_bytes` in Arrow.

    Beside the rows: a byte per value that tells nulls, a spare buffer of each size, and what is not of a
    fixed width once more, since it exists twice while it is joined.
    """
    fixed = [
        column for field in schema if isinstance(column := _column_for(field.type, BufferPool()), FixedColumn)
    ]
    null_bytes = sum(column.width + 1 for column in fixed)
    spare_bytes = sum(number_bytes * width for number_bytes, width in {column.size for column in fixed})
    fixed_bytes = sum(column.number_bytes * column.width for column in fixed)
    joined_bytes = 0 if len(fixed) == len(schema) else max(0, row_bytes - fixed_bytes)
    return num_rows * (row_bytes + null_bytes + spare_bytes + joined_bytes) + _SLACK_BYTES


def warm() -> None:
    """Load and compile what the first window would have to wait for."""
    BufferPool().exchange(np.zeros(1, np.uint64), np.zeros(1, np.uint32))
