"""The rows of a shuffle window, column by column."""

import math
import weakref
from dataclasses import dataclass, field
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
_SLACK_BYTES = MIB


def _fixed_number(kind: pa.DataType) -> pa.DataType | None:
    """The numbers of a column of fixed size, of whole bytes, which NumPy can copy: one in a row, or a list of them."""
    number = kind
    if isinstance(kind, pa.FixedSizeListType) and kind.list_size:
        number = kind.value_type
    is_number = pt.is_integer(number) or pt.is_floating(number)
    is_fixed = is_number or (pt.is_temporal(number) and number.bit_width in (32, 64))
    return number if is_fixed else None


@dataclass(eq=False, slots=True)
class FixedColumn:
    """Numbers, or rows of equally many numbers, in an array that is used again and again."""

    kind: pa.DataType
    number: pa.DataType
    size: tuple[int, ...]
    """Of the array: the rows of a window, and the numbers of a row where they are lists."""
    spare: dict[tuple[Any, ...], NDArray[Any]]
    """A buffer of each type and size, into which columns are permuted in turn: each leaves its own to the next."""
    values: NDArray[Any] | None = None
    valid: list[NDArray[np.bool_] | None] = field(default_factory=list)
    """Which rows, and which numbers, are not null; None, and no memory, where all are valid."""
    window: Any = None
    lent: "weakref.ref[NDArray[Any]] | None" = None
    """What the rows that were given out are views of; dead when all of them are gone."""

    def append(self, piece: ArrowArray, start: int) -> None:
        """Copy a piece to its rows of the window."""
        if not start:
            self.window, self.valid = None, [None, None]
            is_in_use = self.lent is not None and self.lent() is not None
            if self.values is None or is_in_use:
                self.values = np.empty(self.size, f"u{self.number.bit_width // 8}")
        assert self.values is not None
        shape, end, numbers = self.size[1:], start + len(piece), piece
        parts = [(1, piece, shape)]
        if shape:
            numbers = piece.values.slice(piece.offset * shape[0], len(piece) * shape[0])
            parts = [(0, piece, ()), (1, numbers, shape)]
        for index, array, inner in parts:
            if array.null_count:
                valid = self.valid[index]
                if valid is None:
                    valid = self.valid[index] = np.ones((self.size[0], *inner), np.bool_)
                valid[start:end] = array.is_valid().to_numpy(zero_copy_only=False).reshape(-1, *inner)
        buffer = numbers.buffers()[1]
        if buffer is not None and len(numbers):
            dtype = self.values.dtype
            flat = np.frombuffer(buffer, dtype, len(numbers), numbers.offset * dtype.itemsize)
            self.values[start:end] = flat.reshape(len(piece), *shape)

    def permute(self, order: Int64Array) -> int:
        from penstock.runtime.kernels import gather  # it brings numba, which only a shuffle needs

        values, num_rows = self.values, len(order)
        assert values is not None
        key = (values.dtype, values.shape)
        out = self.spare.pop(key, None)
        out = np.empty_like(values) if out is None else out
        valid = [
            None if each is None else np.empty((num_rows, *each.shape[1:]), np.bool_) for each in self.valid
        ]
        for before, after in zip([values, *self.valid], [out, *valid], strict=True):
            if before is None or after is None:
                continue
            if before.ndim == 1:
                gather(before, order, after)
            else:
                np.take(before, order, axis=0, out=after[:num_rows], mode="clip")
        self.spare[key], self.values, self.valid = values, out, valid
        numbers = out[:num_rows]
        self.lent = weakref.ref(numbers)
        valid_rows, valid_numbers = (
            None if each is None else _buffer(np.packbits(each, bitorder="little")) for each in valid
        )
        make: Any = pa.Array.from_buffers
        self.window = make(self.number, numbers.size, [valid_numbers, _buffer(numbers)])
        if values.ndim > 1:
            self.window = make(self.kind, num_rows, [valid_rows], children=[self.window])
        # With the bits that Arrow reads, an eighth of what tells nulls.
        return numbers.nbytes + sum(each.nbytes * 9 // 8 for each in valid if each is not None)

    def rows(self, start: int, end: int, as_views: bool) -> ArrowArray:
        view = self.window.slice(start, end - start)
        return view if as_views else pa.concat_arrays([view])


@dataclass(eq=False, slots=True)
class JoinedColumn:
    """Values of any type, joined into as few chunks as possible: Arrow draws from one chunk ten times faster
    than from several."""

    pieces: list[ArrowArray] = field(default_factory=list)
    chunks: list[ArrowArray] = field(default_factory=list)
    order: Any = None

    def append(self, piece: ArrowArray, start: int) -> None:
        if not start:
            self.chunks = []
        self.pieces.append(piece)

    def permute(self, order: Int64Array) -> int:
        self.order = order  # nothing moves: a permuted copy of texts would take as much again
        group: list[ArrowArray] = []
        group_bytes = 0
        self.pieces.reverse()
        while self.pieces:  # emptied on the way, so that pieces are freed when they are joined
            group.append(self.pieces.pop())
            group_bytes += own_bytes(group[-1])
            if not self.pieces or group_bytes + own_bytes(self.pieces[-1]) > _CHUNK_BYTES:
                self.chunks.append(pa.concat_arrays(group))
                group, group_bytes = [], 0
        return sum(own_bytes(chunk) for chunk in self.chunks)

    def rows(self, start: int, end: int, as_views: bool) -> ArrowArray:
        rows = self.order[start:end]
        if len(self.chunks) == 1:
            return self.chunks[0].take(pa.array(rows))
        starts = np.cumsum([0] + [len(chunk) for chunk in self.chunks])
        by_chunk = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[by_chunk], starts)
        drawn = [
            chunk.take(pa.array(rows[by_chunk[start:end]] - first))
            for chunk, first, start, end in zip(self.chunks, starts, cuts, cuts[1:], strict=False)
            if start < end
        ]
        positions = np.empty_like(by_chunk)
        positions[by_chunk] = np.arange(len(by_chunk))
        return pa.concat_arrays(drawn).take(pa.array(positions))


def own_bytes(array: ArrowArray) -> int:
    """Bytes of an array without its dictionary: other arrays share it, and the reader has counted it."""
    own = array.indices if isinstance(array, pa.DictionaryArray) else array
    return int(own.nbytes)


class RowStore:
    """The rows of one window after another: appended, permuted, and drawn."""

    def __init__(self, schema: pa.Schema, max_rows: int) -> None:
        self._schema = schema
        self._spare: dict[tuple[Any, ...], NDArray[Any]] = {}
        self._columns: list[FixedColumn | JoinedColumn] = []
        for kind in schema.types:
            if (number := _fixed_number(kind)) is None:
                self._columns.append(JoinedColumn())
            else:
                size = (max_rows, kind.list_size) if isinstance(kind, pa.FixedSizeListType) else (max_rows,)
                self._columns.append(FixedColumn(kind, number, size, self._spare))
        self.num_rows = 0
        """Those that were appended and are not permuted yet."""
        self._num_permuted = 0

    def append(self, piece: pa.RecordBatch) -> None:
        """The next rows of the window, the first rows of one where the window before is permuted."""
        for column, array in zip(self._columns, piece.columns, strict=True):
            column.append(array, self.num_rows)
        self.num_rows += piece.num_rows

    def permute(self, order: Int64Array) -> int:
        """Bring the rows into this order; gives the bytes that the store takes with them."""
        self.num_rows, self._num_permuted = 0, len(order)
        order = order.astype(np.uint32) if len(order) < 2**32 else order
        num_bytes = sum(column.permute(order) for column in self._columns)
        return num_bytes + sum(part.nbytes for part in self._spare.values())

    def rows(self, start: int, end: int, as_views: bool = False) -> pa.RecordBatch:
        """Some of the rows that are permuted.

        As views they cost nothing, but each keeps the whole window: for consumers that let go of one batch before they
        take the next. A buffer that somebody still has views of when the next window comes is left to them.
        """
        # Whoever asks for the next window still has the last rows of this one in hand.
        as_views = as_views and end < self._num_permuted
        return pa.RecordBatch.from_arrays(
            [column.rows(start, end, as_views) for column in self._columns], schema=self._schema
        )


def window_bytes(schema: pa.Schema, num_rows: int, row_bytes: int) -> int:
    """What a store of so many rows takes at most, where rows take `row_bytes` in Arrow.

    Beside the rows: a byte per value that tells nulls, a spare buffer of each size, and what is not of a
    fixed width once more, since it exists twice while it is joined.
    """
    fixed = [
        (number.bit_width // 8, kind.list_size if isinstance(kind, pa.FixedSizeListType) else 1)
        for kind in schema.types
        if (number := _fixed_number(kind)) is not None
    ]
    null_bytes = sum(width + 1 for _, width in fixed)
    spare_bytes = sum(math.prod(size) for size in {*fixed})
    joined_bytes = 0
    if len(fixed) < len(schema):
        joined_bytes = max(0, row_bytes - sum(math.prod(size) for size in fixed))
    return num_rows * (row_bytes + null_bytes + spare_bytes + joined_bytes) + _SLACK_BYTES


def warm() -> None:
    """Load and compile what the first window would have to wait for."""
    from penstock.runtime.kernels import gather

    gather(np.zeros(1, np.uint64), np.zeros(1, np.uint32), np.zeros(1, np.uint64))
