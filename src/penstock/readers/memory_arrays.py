"""Arrays in memory as a data set: the same blocks, shards and positions as files have."""

import mmap
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, format_size
from penstock.readers.columns import project, with_types
from penstock.readers.files import DataFile
from penstock.readers.numpy_arrays import (
    BLOCK_BYTES,
    Values,
    arrow_type,
    check_lengths,
    given_row_bytes,
    making_row_bytes,
    row_ranges,
    to_arrow,
)
from penstock.readers.order import Blocks
from penstock.readers.reading import RollingLease
from penstock.readers.scan import BlockDecoder, Fingerprint, ReadRequest, ScannedFiles, fingerprint
from penstock.readers.stream import ROW_ID_BYTES
from penstock.runtime.budget import Share

Held: TypeAlias = "Values | pa.Array[Any] | pa.ChunkedArray[Any]"
MEMORY = "arrays in memory"
"""What data in memory is called where files have their path."""
_END_BYTES = 64 * KIB
_MIN_BATCH_BYTES = 64 * KIB
_EVERYTHING = ReadRequest()


class HeldColumn:
    """An array that somebody else holds, given out by row ranges: as views where the layout allows it."""

    def __init__(self, name: str, values: Held) -> None:
        self._name = name
        self._values = values
        self.map: mmap.mmap | None = None
        if isinstance(values, np.ndarray):
            self.type = arrow_type(values.dtype, values.shape, MEMORY, name)
            self.row_bytes = given_row_bytes(values.dtype, values.shape)
            self.map = _map_of(values)
            making_bytes = making_row_bytes(values.dtype, values.shape)
            copied_bytes = making_bytes or (0 if values.flags.c_contiguous else self.row_bytes)
            self.leased_row_bytes = copied_bytes + (self.row_bytes if self.map is not None else 0)
            """What giving out a row takes beyond what is held already: copies, and pages of a map that are touched."""
        elif isinstance(values, pa.Array | pa.ChunkedArray):
            self.type = project(pa.schema([(name, values.type)]), [name], MEMORY).field(0).type
            self.row_bytes = -(-values.nbytes // max(1, len(values)))
            self.leased_row_bytes = 0 if values.type == self.type else 2 * self.row_bytes
        else:
            kind = type(values).__name__
            raise DataError.at(f"is a {kind}; give a NumPy or an Arrow array", file=MEMORY, column=name)
        self.num_rows = len(values)

    def rows(self, first_row: int, end_row: int) -> "pa.Array[Any] | pa.ChunkedArray[Any]":
        """Some rows. `type` may be another one that they can be cast to."""
        if isinstance(self._values, np.ndarray):
            return to_arrow(self._values[first_row:end_row], MEMORY, self._name, first_row)
        return self._values.slice(first_row, end_row - first_row)


def _map_of(values: Values) -> mmap.mmap | None:
    """The map of a file that an array shows; changes in a private copy would be lost, so that is none."""
    shown: Any = values
    while isinstance(shown, np.ndarray):
        if isinstance(shown, np.memmap) and isinstance(shown.base, mmap.mmap):
            return None if shown.mode == "c" else shown.base
        shown = shown.base
    return None


def scan_arrays(arrays: Mapping[str, Held], wanted: ReadRequest = _EVERYTHING) -> ScannedFiles:
    """NumPy or Arrow arrays of equal lengths, by the names of their columns; they are not copied.

    >>> import numpy as np
    >>> scan_arrays({"x": np.zeros((5, 2), np.float32), "y": np.arange(5)}).num_rows
    5
    """
    if not arrays:
        raise DataError(f"{MEMORY}: there are none; give at least one array")
    names = project(pa.schema([(name, pa.string()) for name in arrays]), wanted.columns, MEMORY).names
    held = {name: HeldColumn(name, arrays[name]) for name in names}
    num_rows = check_lengths({f"column '{name}'": column.num_rows for name, column in held.items()})
    return ScannedArrays(pa.schema([(name, column.type) for name, column in held.items()]), held, num_rows)


@dataclass(frozen=True)
class ScannedArrays(ScannedFiles):
    """Arrays that are held by whoever gave them."""

    columns: pa.Schema
    held: Mapping[str, HeldColumn]
    num_held_rows: int

    @cached_property
    def files(self) -> tuple[DataFile, ...]:  # type: ignore[override]
        """One, which is no file: what messages call the data."""
        return (DataFile(MEMORY, self.held_row_bytes * self.num_held_rows),)

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        """Names, types and lengths, and a checksum of the first and the last rows."""
        end_rows = min(self.num_held_rows, 1 + _END_BYTES // self.held_row_bytes)
        checksum = zlib.crc32(repr([(name, str(column.type)) for name, column in self.held.items()]).encode())
        for first_row in (0, self.num_held_rows - end_rows):
            for batch in self.rows(first_row, first_row + end_rows):
                checksum = zlib.crc32(batch.serialize(), checksum)
        return (fingerprint(self.files[0], self.num_held_rows, checksum),)

    @cached_property
    def blocks(self) -> Blocks:
        ranges = row_ranges(self.num_held_rows, self.held_row_bytes)
        return Blocks.of((0, first, count) for first, count in ranges)

    @property
    def row_bytes(self) -> int:
        return self.held_row_bytes + ROW_ID_BYTES

    @cached_property
    def held_row_bytes(self) -> int:
        return max(1, sum(column.row_bytes for column in self.held.values()))

    @cached_property
    def leased_row_bytes(self) -> int:
        """What giving out a row takes beside what is held already; 0: rows are views."""
        return sum(column.leased_row_bytes for column in self.held.values())

    @property
    def min_bytes(self) -> int:
        return self._share_bytes(_MIN_BATCH_BYTES)

    @property
    def ample_bytes(self) -> int:
        return self._share_bytes(BLOCK_BYTES)

    def _share_bytes(self, batch_bytes: int) -> int:
        return max(1, 2 * self.leased_row_bytes * max(1, batch_bytes // self.held_row_bytes))

    @property
    def block_bytes(self) -> int:
        """A block; where it is a view, reading ahead holds nothing, but does not know that."""
        return max(1, int(self.blocks.num_rows.max(initial=0)) * self.held_row_bytes)

    def decoder(self, share: Share) -> BlockDecoder:
        return HeldDecoder(self, share)

    def rows(self, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Some rows, cut where chunks end."""
        table = pa.table({name: column.rows(first_row, end_row) for name, column in self.held.items()})
        for batch in table.to_batches():
            yield with_types(batch, self.columns)

    def give_back_pages(self) -> None:
        """Pages of a map count as memory of the process until they are given back; views stay valid."""
        for column in self.held.values():
            if column.map is not None:
                column.map.madvise(mmap.MADV_DONTNEED)


class HeldDecoder(BlockDecoder):
    """The bytes of the copies in work and of those before; nothing where rows are views."""

    def __init__(self, scanned: ScannedArrays, share: Share) -> None:
        self._scanned = scanned
        self._lease = RollingLease(share)
        self._batch_rows = max(1, BLOCK_BYTES // scanned.held_row_bytes)
        if scanned.leased_row_bytes:
            fitting_rows = share.limit_bytes // (2 * scanned.leased_row_bytes)
            if fitting_rows < 1:
                raise BudgetExceeded(
                    f"{MEMORY}: giving out a row takes {format_size(2 * scanned.leased_row_bytes)}, but {share.name} "
                    f"may hold {format_size(share.limit_bytes)}; raise {share.setting}, or give arrays that need no "
                    "conversion"
                )
            self._batch_rows = min(fitting_rows, self._batch_rows)

    def close(self) -> None:
        self._lease.close()
        self._scanned.give_back_pages()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        start = int(self._scanned.blocks.first_row[block])
        for first in range(start + first_row, start + end_row, self._batch_rows):
            end = min(first + self._batch_rows, start + end_row)
            self._scanned.give_back_pages()
            leased_bytes = (end - first) * self._scanned.leased_row_bytes
            self._lease.move_on(leased_bytes, leased_bytes)
            yield from self._scanned.rows(first, end)
