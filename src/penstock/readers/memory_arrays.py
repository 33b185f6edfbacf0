"""Arrays in memory as a data set: the same blocks, shards and positions as files have."""

import mmap
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.columns import project, with_types
from penstock.readers.files import DataFile
from penstock.readers.numpy_arrays import (
    ArrayFiles,
    Values,
    arrow_type,
    check_lengths,
    given_row_bytes,
    making_row_bytes,
    to_arrow,
)
from penstock.readers.numpy_files import ArrayPart, ScannedArrays
from penstock.readers.scan import ReadRequest, ScannedFiles, fingerprint

Held: TypeAlias = "Values | pa.Array[Any] | pa.ChunkedArray[Any]"
MEMORY = "arrays in memory"
"""What data in memory is called where files have their path."""
_END_BYTES = 64 * KIB
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


def scan_arrays(arrays: Mapping[str, Held], request: ReadRequest = _EVERYTHING) -> ScannedFiles:
    """NumPy or Arrow arrays of equal lengths, by the names of their columns; they are not copied.

    >>> import numpy as np
    >>> scan_arrays({"x": np.zeros((5, 2), np.float32), "y": np.arange(5)}).num_rows
    5
    """
    if not arrays:
        raise DataError(f"{MEMORY}: there are none; give at least one array")
    names = project(pa.schema([(name, pa.string()) for name in arrays]), request.columns, MEMORY).names
    held = {name: HeldColumn(name, arrays[name]) for name in names}
    schema = pa.schema([(name, column.type) for name, column in held.items()])
    return ScannedArrays.of(schema, [HeldPart(held, schema)])


class HeldPart(ArrayPart):
    """Arrays that are held by whoever gave them: only copies are leased."""

    reading, advice = "giving out", "give arrays that need no conversion"

    def __init__(self, held: Mapping[str, HeldColumn], schema: pa.Schema) -> None:
        self._held = held
        self.num_rows = check_lengths({f"column '{name}'": column.num_rows for name, column in held.items()})
        self.row_bytes = max(1, sum(column.row_bytes for column in held.values()))
        self.retained_row_bytes = self.reading_row_bytes = sum(c.leased_row_bytes for c in held.values())
        self.file = DataFile(MEMORY, self.row_bytes * self.num_rows)
        # Names, types and lengths, and a checksum of the first and the last rows.
        end_rows = min(self.num_rows, 1 + _END_BYTES // self.row_bytes)
        checksum = zlib.crc32(repr([(name, str(column.type)) for name, column in held.items()]).encode())
        for first_row in (0, self.num_rows - end_rows):
            for batch in self.read(ArrayFiles(), schema, first_row, first_row + end_rows):
                checksum = zlib.crc32(batch.serialize(), checksum)
        self.fingerprint = fingerprint(self.file, self.num_rows, checksum)

    def read(self, files: ArrayFiles, schema: pa.Schema, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """Some rows, cut where chunks end."""
        self.close()
        table = pa.table({name: column.rows(first, end) for name, column in self._held.items()})
        for batch in table.to_batches():
            yield with_types(batch, schema)

    def sample(self, schema: pa.Schema) -> tuple[int, int]:
        return self.row_bytes, 1

    def close(self) -> None:
        """Pages of a map count as memory of the process until they are given back; views stay valid."""
        for column in self._held.values():
            if column.map is not None:
                column.map.madvise(mmap.MADV_DONTNEED)
