"""NumPy arrays as a data set: `.npy` and `.npz` files, folders of them, and arrays in memory.

A column is an array; its first axis are the rows. Arrays that belong together have equal lengths and make one part of
the data set: the members of an `.npz`, the `.npy` files of a folder, a split of a store that `penstock merge` wrote, or
arrays in memory.
"""

import json
import mmap
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.columns import join_schemas, project, with_types
from penstock.readers.files import COMPRESSIONS, MANIFEST_NAME, DataFile, data_suffix, is_uri, split_file
from penstock.readers.numpy_arrays import (
    STREAM_BYTES,
    ArrayFiles,
    StoredArray,
    Values,
    arrow_type,
    check_lengths,
    given_row_bytes,
    making_row_bytes,
    read_arrays,
    to_arrow,
)
from penstock.readers.order import Blocks
from penstock.readers.scan import (
    BlockDecoder,
    Fingerprint,
    ReadRequest,
    ReadSizes,
    RollingLease,
    ScannedFiles,
    ends_checksum,
)
from penstock.readers.sections import ReadingSection
from penstock.readers.storage import open_input
from penstock.readers.stream import ROW_ID_BYTES
from penstock.runtime.budget import Share

_BLOCK_BYTES = 8 * MIB
"""About what the requested columns of a block take: large enough to be read fast, small enough to be mixed well."""
_MIN_BATCH_BYTES = 64 * KIB
"""With batches smaller than that, opening and calling would take longer than reading."""
_SAMPLED_ROWS, _SAMPLED_BYTES = 256, MIB
Held: TypeAlias = "Values | pa.Array[Any] | pa.ChunkedArray[Any]"
MEMORY = "arrays in memory"  # what data in memory is called where files have their path
_END_BYTES = 64 * KIB
_EVERYTHING = ReadRequest()


class ArrayPart(ABC):
    """Columns that belong together, row by row."""

    file: DataFile  # what the part is called: its file, or the folder of several
    fingerprint: Fingerprint
    num_rows: int
    row_bytes: int  # as it is given out, at most
    retained_row_bytes: int  # leased for a row while it is in use
    reading_row_bytes: int  # leased for a row while it is read and converted
    stream_bytes: int = 0  # what open streams hold, whatever the number of rows; 0: there are none
    reading: str
    advice: str  # what takes too much for a row, and what to do about it

    @abstractmethod
    def read(
        self, files: ArrayFiles, schema: pa.Schema, first: int, end: int
    ) -> Iterator[pa.RecordBatch]: ...

    @abstractmethod
    def sample(self, schema: pa.Schema) -> tuple[int, int]:
        """Bytes and number of some rows as they are given out."""

    def close(self) -> None:
        return

    def share_bytes(self, batch_bytes: int) -> int:
        """The share with which batches of about so many bytes are read, beside one that is still in use."""
        num_rows = max(1, batch_bytes // self.row_bytes)
        return max(1, self.stream_bytes + num_rows * (self.retained_row_bytes + self.reading_row_bytes))


@dataclass(kw_only=True, eq=False)
class ScannedArrays(ScannedFiles):
    parts: tuple[ArrayPart, ...]

    @classmethod
    def of(cls, columns: pa.Schema, parts: Sequence[ArrayPart]) -> "ScannedArrays":
        """Blocks are row ranges of about 8 MiB; a part with compressed members is one, since it is read as a stream."""
        blocks: list[tuple[int, int, int]] = []
        for index, part in enumerate(parts):
            rows, size = part.num_rows, max(1, _BLOCK_BYTES // part.row_bytes)
            size = max(1, rows) if part.stream_bytes else size
            blocks += [(index, first, min(size, rows - first)) for first in range(0, rows, size)]
        return cls(
            files=tuple(part.file for part in parts),
            fingerprints=tuple(part.fingerprint for part in parts),
            columns=columns,
            blocks=Blocks.of(blocks),
            parts=tuple(parts),
        )

    @cached_property
    def sizes(self) -> ReadSizes:
        return ReadSizes(
            max(part.share_bytes(_MIN_BATCH_BYTES) for part in self.parts),
            max(part.share_bytes(_BLOCK_BYTES) for part in self.parts),
            max(
                max(part.row_bytes, min(_BLOCK_BYTES, part.num_rows * part.row_bytes)) for part in self.parts
            ),
        )

    @cached_property
    def row_bytes(self) -> int:
        """From the first, a middle and the last part."""
        parts = [part for part in self.parts if part.num_rows]
        sampled = {id(part): part for part in parts[:1] + parts[len(parts) // 2 :][:1] + parts[-1:]}
        samples = [part.sample(self.columns) for part in sampled.values()]
        num_bytes, num_rows = sum(sample[0] for sample in samples), sum(sample[1] for sample in samples)
        return -(-num_bytes // max(1, num_rows)) + ROW_ID_BYTES

    def decoder(self, share: Share) -> BlockDecoder:
        return ArrayDecoder(self, share)


class ArrayDecoder(BlockDecoder):
    def __init__(self, scanned: ScannedArrays, share: Share) -> None:
        self._scanned = scanned
        self._lease = RollingLease(share, share.limit_bytes)
        self._files = ArrayFiles()
        self._batch_rows = []
        for part in scanned.parts:
            row_bytes = part.retained_row_bytes + part.reading_row_bytes
            batch_rows = max(1, _BLOCK_BYTES // part.row_bytes)
            if row_bytes:
                batch_rows = min(batch_rows, (share.limit_bytes - part.stream_bytes) // row_bytes)
            if batch_rows < 1:
                raise BudgetExceeded(
                    f"{part.file.path}: {part.reading} a row takes {format_size(part.share_bytes(0))}, but "
                    f"{share.name} may hold {format_size(share.limit_bytes)}; raise {share.setting}, or {part.advice}"
                )
            self._batch_rows.append(batch_rows)

    def close(self) -> None:
        self._lease.close()
        self._files.close()
        for part in self._scanned.parts:
            part.close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        blocks = self._scanned.blocks
        index, start = int(blocks.file_index[block]), int(blocks.first_row[block])
        part, batch_rows = self._scanned.parts[index], self._batch_rows[index]
        for first in range(start + first_row, start + end_row, batch_rows):
            end = min(first + batch_rows, start + end_row)
            needed_bytes = part.stream_bytes + (end - first) * part.reading_row_bytes
            self._lease.move_on(needed_bytes, (end - first) * part.retained_row_bytes)
            yield from part.read(self._files, self._scanned.columns, first, end)


class FilePart(ArrayPart):
    reading, advice = "reading", "read fewer columns"

    def __init__(self, name: str, group: Sequence[DataFile], arrays: Mapping[str, StoredArray]) -> None:
        self.file = DataFile(name, sum(file.size_bytes for file in group))
        self.arrays = arrays
        self.num_rows = check_lengths({array.title: array.num_rows for array in arrays.values()})
        checksum = ends_checksum(group[0])
        for other in group[1:]:
            checksum = zlib.crc32(f"{other.name} {ends_checksum(other)}".encode(), checksum)
        self.fingerprint = (self.file.name, self.file.size_bytes, self.num_rows, checksum)
        self.row_bytes = max(1, sum(given_row_bytes(array.dtype, array.shape) for array in arrays.values()))
        self.retained_row_bytes = self.row_bytes
        self.reading_row_bytes = max(1, sum(array.reading_row_bytes for array in arrays.values()))
        self.stream_bytes = sum(STREAM_BYTES for array in arrays.values() if array.member is not None)

    def read(self, files: ArrayFiles, schema: pa.Schema, first: int, end: int) -> Iterator[pa.RecordBatch]:
        columns = []
        for name in schema.names:
            array = self.arrays[name]
            columns.append(to_arrow(files.rows(array, first, end), array.path, name, first))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def sample(self, schema: pa.Schema) -> tuple[int, int]:
        """Strings are shorter than their width."""
        row_bytes = self.row_bytes + self.reading_row_bytes
        num_rows = max(1, min(_SAMPLED_ROWS, _SAMPLED_BYTES // row_bytes, self.num_rows))
        starts = {0, (self.num_rows - num_rows) // 2, self.num_rows - num_rows}
        with closing(ArrayFiles()) as files:
            firsts = [0] if self.stream_bytes else sorted(starts)
            batches = [
                batch for first in firsts for batch in self.read(files, schema, first, first + num_rows)
            ]
        return sum(batch.nbytes for batch in batches), len(firsts) * num_rows


class _Stores:
    """The manifests of stores: which split a file belongs to, and the name of the column that an array is."""

    def __init__(self) -> None:
        self._listed: dict[str, list[Mapping[str, Any]]] = {}

    def arrays_in(self, file: DataFile) -> list[Mapping[str, Any]]:
        """What the manifest of a store says of a file; nothing of one that it does not list."""
        if (found := split_file(file.path)) is None:
            return []
        folder, name = found
        if folder not in self._listed:
            query = file.path.partition("?")[2] if is_uri(file.path) else ""
            document: Any = None
            try:
                with open_input(f"{folder}/{MANIFEST_NAME}{'?' if query else ''}{query}") as source:
                    document = json.loads(source.read())
            except (DataError, ValueError):  # There is none, or it is another program's.
                pass
            arrays = document.get("arrays") if isinstance(document, Mapping) else None
            keys = {"file", "member", "split", "name"}
            self._listed[folder] = [
                array for array in arrays or [] if isinstance(array, Mapping) and keys <= array.keys()
            ]
        return [array for array in self._listed[folder] if array["file"] == name]

    def columns(self, file: DataFile) -> dict[str, StoredArray]:
        stem = os.path.splitext(file.name)[0]
        names = {array["member"] or stem: array["name"] for array in self.arrays_in(file)}
        return {names.get(name, name): array for name, array in read_arrays(file).items()}

    def groups(self, files: Sequence[DataFile]) -> dict[str, list[DataFile]]:
        """Each part: a split of a store, the `.npy` files of a folder with `.npz` beside them, or an `.npz` alone."""
        parts: list[tuple[str, str | None]] = []
        for file in files:
            found, arrays = split_file(file.path), self.arrays_in(file)
            if found is not None and arrays:
                parts.append((found[0], arrays[0]["split"]))
            else:
                path = file.path.partition("?")[0] if is_uri(file.path) else file.path
                parts.append((os.path.dirname(path) or ".", None))
        pairs = list(zip(parts, files, strict=True))
        of_plain_files = {part for part, file in pairs if data_suffix(file.path) != ".npz"}
        groups: dict[tuple[str, str | None], list[DataFile]] = {}
        for part, file in pairs:
            is_alone = part not in of_plain_files and part[1] is None
            groups.setdefault((file.path, None) if is_alone else part, []).append(file)
        named = {}
        for (folder, split), group in groups.items():
            name = folder if split is None else f"{folder}/*_{split}*"
            named[group[0].path if len(group) == 1 else name] = group
        return named


def scan_numpy(_: ReadingSection, files: Sequence[DataFile], request: ReadRequest) -> ScannedFiles:
    """Read the headers of all arrays; parts without rows have no types to disagree with."""
    parts: list[FilePart] = []
    schema: pa.Schema | None = None
    columns, first_path = request.columns, files[0].path
    stores = _Stores()
    groups = stores.groups(files)
    for index, (name, group) in enumerate(groups.items()):
        arrays: dict[str, StoredArray] = {}
        for file in group:
            if os.path.splitext(file.name)[1] in COMPRESSIONS:
                raise DataError(
                    f"{file.path}: cannot be entered at a row; unpack it, or write a compressed .npz"
                )
            found = stores.columns(file)
            for column in found.keys() & arrays.keys():
                raise DataError(
                    f"{arrays[column].path} and {file.path} both have the column '{column}'; rename one"
                )
            arrays |= found
        names = project(pa.schema([(column, pa.string()) for column in arrays]), columns, name).names
        part = FilePart(name, group, {column: arrays[column] for column in names})
        parts.append(part)
        if part.num_rows or (schema is None and index == len(groups) - 1):
            types = pa.schema([(column, _type_of(array, column)) for column, array in part.arrays.items()])
            if schema is None:
                schema, first_path, columns = types, name, types.names
            elif not schema.equals(types):
                schema = join_schemas(schema, first_path, types, name)
    assert schema is not None  # that of the last file counts even without rows
    return ScannedArrays.of(schema, parts)


def _type_of(array: StoredArray, column: str) -> Any:
    found = arrow_type(array.dtype, array.shape, array.path, column)
    if array.member is not None and array.is_column_major:
        raise DataError.at(
            "is compressed in column-major order, which has no rows to read; write it with np.ascontiguousarray",
            file=array.path,
            column=column,
        )
    return found


# Arrays in memory: the same blocks, shards and positions as files have.


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
        self.fingerprint = (self.file.name, self.file.size_bytes, self.num_rows, checksum)

    def read(self, files: ArrayFiles, schema: pa.Schema, first: int, end: int) -> Iterator[pa.RecordBatch]:
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
