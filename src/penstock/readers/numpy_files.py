"""NumPy files: `.npy`, `.npz` and folders of them.

A column is an array; its first axis are the rows. Arrays that belong together have equal lengths and make one part of
the data set: the members of an `.npz`, the `.npy` files of a folder, a split of a store that `penstock merge` wrote, or
arrays in memory (`memory_arrays.py`).
"""

import json
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.columns import join_schemas, project
from penstock.readers.files import COMPRESSIONS, MANIFEST_NAME, DataFile, split_file
from penstock.readers.numpy_arrays import (
    STREAM_BYTES,
    ArrayFiles,
    StoredArray,
    arrow_type,
    check_lengths,
    given_row_bytes,
    read_arrays,
    to_arrow,
)
from penstock.readers.order import Blocks
from penstock.readers.reading import RollingLease
from penstock.readers.scan import (
    BlockDecoder,
    Fingerprint,
    ReadRequest,
    ScannedFiles,
    ends_checksum,
    fingerprint,
)
from penstock.readers.sections import ReadingSection
from penstock.readers.storage import open_input
from penstock.readers.stream import ROW_ID_BYTES
from penstock.readers.uris import is_uri
from penstock.runtime.budget import Share

_BLOCK_BYTES = 8 * MIB
"""About what the requested columns of a block take: large enough to be read fast, small enough to be mixed well."""
_MIN_BATCH_BYTES = 64 * KIB
"""With batches smaller than that, opening and calling would take longer than reading."""
_SAMPLED_ROWS, _SAMPLED_BYTES = 256, MIB


class ArrayPart(ABC):
    """Columns that belong together, row by row."""

    file: DataFile
    """What the part is called: its file, or the folder of several."""
    fingerprint: Fingerprint
    num_rows: int
    row_bytes: int
    """As it is given out, at most."""
    retained_row_bytes: int
    """Leased for a row while it is in use."""
    reading_row_bytes: int
    """Leased for a row while it is read and converted."""
    stream_bytes: int = 0
    """What open streams hold, whatever the number of rows; 0: there are none."""
    reading: str
    advice: str
    """What takes too much for a row, and what to do about it."""

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


@dataclass(frozen=True)
class ScannedArrays(ScannedFiles):
    """What the headers of the arrays say."""

    files: tuple[DataFile, ...]
    fingerprints: tuple[Fingerprint, ...]
    columns: pa.Schema
    parts: tuple[ArrayPart, ...]

    @classmethod
    def of(cls, columns: pa.Schema, parts: Sequence[ArrayPart]) -> "ScannedArrays":
        files, marks = tuple(part.file for part in parts), tuple(part.fingerprint for part in parts)
        return cls(files, marks, columns, tuple(parts))

    @cached_property
    def blocks(self) -> Blocks:
        """Row ranges of about 8 MiB; a part with compressed members is one block, since it is read as a stream."""
        found: list[tuple[int, int, int]] = []
        for index, part in enumerate(self.parts):
            rows, size = part.num_rows, max(1, _BLOCK_BYTES // part.row_bytes)
            size = max(1, rows) if part.stream_bytes else size
            found += [(index, first, min(size, rows - first)) for first in range(0, rows, size)]
        return Blocks.of(found)

    @cached_property
    def row_bytes(self) -> int:
        """From the first, a middle and the last part."""
        parts = [part for part in self.parts if part.num_rows]
        sampled = {id(part): part for part in parts[:1] + parts[len(parts) // 2 :][:1] + parts[-1:]}
        samples = [part.sample(self.columns) for part in sampled.values()]
        num_bytes, num_rows = sum(sample[0] for sample in samples), sum(sample[1] for sample in samples)
        return -(-num_bytes // max(1, num_rows)) + ROW_ID_BYTES

    @cached_property
    def min_bytes(self) -> int:
        return max(part.share_bytes(_MIN_BATCH_BYTES) for part in self.parts)

    @cached_property
    def ample_bytes(self) -> int:
        return max(part.share_bytes(_BLOCK_BYTES) for part in self.parts)

    @cached_property
    def block_bytes(self) -> int:
        return max(
            max(part.row_bytes, min(_BLOCK_BYTES, part.num_rows * part.row_bytes)) for part in self.parts
        )

    def decoder(self, share: Share) -> BlockDecoder:
        return ArrayDecoder(self, share)


class ArrayDecoder(BlockDecoder):
    """Open files, and the bytes of the batch in work and of the one before."""

    def __init__(self, scanned: ScannedArrays, share: Share) -> None:
        self._scanned = scanned
        self._lease = RollingLease(share)
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
    """The arrays of a group of files."""

    reading, advice = "reading", "read fewer columns"

    def __init__(self, name: str, group: Sequence[DataFile], arrays: Mapping[str, StoredArray]) -> None:
        self.file = DataFile(name, sum(file.size_bytes for file in group))
        self.arrays = arrays
        self.num_rows = check_lengths({array.title: array.num_rows for array in arrays.values()})
        checksum = ends_checksum(group[0])
        for other in group[1:]:
            checksum = zlib.crc32(f"{other.name} {ends_checksum(other)}".encode(), checksum)
        self.fingerprint = fingerprint(self.file, self.num_rows, checksum)
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
    """The manifests of stores: which split a file belongs to, and what its arrays are called as columns.

    In a store, labels and masks of a head have the same name in their files, and every name of a file ends in its
    split. Columns are called as in its batch files, whatever the split: `labels_{head}`, `masks_{head}`.
    """

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
        """The arrays of a file by the names of their columns."""
        stem = os.path.splitext(file.name)[0]
        names = {array["member"] or stem: array["name"] for array in self.arrays_in(file)}
        return {names.get(name, name): array for name, array in read_arrays(file).items()}

    def groups(self, files: Sequence[DataFile]) -> dict[str, list[DataFile]]:
        """The files of each part by its name.

        The `.npy` files of one folder, and `.npz` files beside them; else an `.npz` alone; in a store a split.
        """
        parts: list[tuple[str, str | None]] = []
        for file in files:
            found, arrays = split_file(file.path), self.arrays_in(file)
            if found is not None and arrays:
                parts.append((found[0], arrays[0]["split"]))
            else:
                path = file.path.partition("?")[0] if is_uri(file.path) else file.path
                parts.append((os.path.dirname(path) or ".", None))
        of_plain_files = {part for part, file in zip(parts, files, strict=True) if file.suffix != ".npz"}
        groups: dict[tuple[str, str | None], list[DataFile]] = {}
        for part, file in zip(parts, files, strict=True):
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
            first_path = name if schema is None else first_path
            schema = join_schemas(schema, first_path, types, name)
            columns = schema.names
    if schema is None:
        raise DataError("no NumPy files are given")
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
