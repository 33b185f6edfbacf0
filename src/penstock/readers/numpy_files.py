"""NumPy files: `.npy`, `.npz` and folders of them.

A column is an array; its first axis are the rows. Arrays that belong together have equal lengths and make one part of
the data set: the members of an `.npz`, the `.npy` files of a folder, or a split of a store that `penstock merge` wrote.
"""

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.array_files import STREAM_BYTES, ArrayFiles, StoredArray, read_arrays
from penstock.readers.array_values import (
    BLOCK_BYTES,
    arrow_type,
    check_lengths,
    given_row_bytes,
    row_ranges,
    to_arrow,
)
from penstock.readers.blocks import Blocks
from penstock.readers.columns import join_schemas, project
from penstock.readers.files import COMPRESSIONS, DataFile
from penstock.readers.fingerprints import Fingerprint, ends_checksum, fingerprint
from penstock.readers.leasing import RollingLease
from penstock.readers.origin import ROW_FIELD
from penstock.readers.scan import BlockDecoder, ReadRequest, ScannedFiles
from penstock.readers.sections import ReadingSection
from penstock.readers.splits import SplitFile, manifest_path
from penstock.readers.storage import open_input
from penstock.readers.uris import is_uri
from penstock.runtime.budget import Share

_MIN_BATCH_BYTES = 64 * KIB
"""With batches smaller than that, opening and calling would take longer than reading."""
_SAMPLED_ROWS, _SAMPLED_BYTES = 256, MIB


@dataclass(frozen=True, slots=True)
class Part:
    """Arrays that belong together, row by row."""

    file: DataFile
    """What the part is called: its file, or the folder of several."""
    arrays: Mapping[str, StoredArray]
    """The wanted ones."""
    num_rows: int
    fingerprint: Fingerprint
    given_row_bytes: int
    """Of a row as it is given out, at most."""
    reading_row_bytes: int
    """Of a row while it is read and converted."""
    stream_bytes: int
    """What open streams hold, whatever the number of rows; 0: there are none."""

    @classmethod
    def of(cls, file: DataFile, group: Sequence[DataFile], arrays: Mapping[str, StoredArray]) -> "Part":
        """The part of a group of files."""
        num_rows = check_lengths({array.title: array.num_rows for array in arrays.values()})
        checksum = ends_checksum(group[0])
        for other in group[1:]:
            checksum = zlib.crc32(f"{other.name} {ends_checksum(other)}".encode(), checksum)
        return cls(
            file,
            arrays,
            num_rows,
            fingerprint(file, num_rows, checksum),
            max(1, sum(given_row_bytes(array.dtype, array.shape) for array in arrays.values())),
            max(1, sum(array.reading_row_bytes for array in arrays.values())),
            sum(STREAM_BYTES for array in arrays.values() if array.member is not None),
        )

    def share_bytes(self, batch_bytes: int) -> int:
        """The share with which batches of about so many bytes are read, beside one that is still in use."""
        num_rows = max(1, batch_bytes // self.given_row_bytes)
        return self.stream_bytes + num_rows * (self.given_row_bytes + self.reading_row_bytes)


class _Stores:
    """The manifests of stores: which split a file belongs to, and what its arrays are called as columns.

    In a store, labels and masks of a head have the same name in their files, and every name of a file ends in its
    split. Columns are called as in its batch files, whatever the split: `labels_{head}`, `masks_{head}`.
    """

    def __init__(self) -> None:
        self._listed: dict[str, list[Mapping[str, Any]]] = {}

    def arrays_in(self, file: DataFile) -> list[Mapping[str, Any]]:
        """What the manifest of a store says of a file; nothing of one that it does not list."""
        found = SplitFile.of(file.path)
        if found is None:
            return []
        if found.folder not in self._listed:
            self._listed[found.folder] = []
            try:
                with open_input(manifest_path(file.path, found.folder)) as source:
                    document = json.loads(source.read())
            except (DataError, ValueError):  # There is none, or it is another program's.
                return []
            arrays = document.get("arrays") if isinstance(document, Mapping) else None
            keys = {"file", "member", "split", "name"}
            self._listed[found.folder] = [
                array for array in arrays or [] if isinstance(array, Mapping) and keys <= array.keys()
            ]
        return [array for array in self._listed[found.folder] if array["file"] == found.name]

    def part_of(self, file: DataFile) -> tuple[str, str | None]:
        """What files of one part have in common: a folder, and in a store the split."""
        arrays, found = self.arrays_in(file), SplitFile.of(file.path)
        if found is not None and arrays:
            return found.folder, arrays[0]["split"]
        path = file.path.partition("?")[0] if is_uri(file.path) else file.path
        return os.path.dirname(path) or ".", None

    def columns(self, file: DataFile) -> dict[str, StoredArray]:
        """The arrays of a file by the names of their columns."""
        stem = os.path.splitext(file.name)[0]
        names = {array["member"] or stem: array["name"] for array in self.arrays_in(file)}
        return {names.get(name, name): array for name, array in read_arrays(file).items()}

    def groups(self, files: Sequence[DataFile]) -> dict[str, list[DataFile]]:
        """The files of each part by its name.

        The `.npy` files of one folder, and `.npz` files beside them; else an `.npz` alone; in a store a split.
        """
        parts = [self.part_of(file) for file in files]
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


@dataclass(frozen=True)
class ScannedNumpy(ScannedFiles):
    """What the headers of the arrays say."""

    parts: tuple[Part, ...]
    schema: pa.Schema

    @property
    def files(self) -> tuple[DataFile, ...]:  # type: ignore[override]
        return tuple(part.file for part in self.parts)

    @property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        return tuple(part.fingerprint for part in self.parts)

    @property
    def columns(self) -> pa.Schema:
        return self.schema

    @cached_property
    def blocks(self) -> Blocks:
        """Row ranges of about 8 MiB; a part with compressed members is one block, since it is read as a stream."""
        return Blocks.of(
            (index, first_row, num_rows)
            for index, part in enumerate(self.parts)
            for first_row, num_rows in row_ranges(
                part.num_rows, part.given_row_bytes, is_stream=part.stream_bytes > 0
            )
        )

    @cached_property
    def row_bytes(self) -> int:
        """From rows of the first, a middle and the last part: strings are shorter than their width."""
        parts = [part for part in self.parts if part.num_rows]
        sampled = {part.file.path: part for part in parts[:1] + parts[len(parts) // 2 :][:1] + parts[-1:]}
        batches = []
        for part in sampled.values():
            row_bytes = part.given_row_bytes + part.reading_row_bytes
            num_rows = max(1, min(_SAMPLED_ROWS, _SAMPLED_BYTES // row_bytes, part.num_rows))
            starts = {0, (part.num_rows - num_rows) // 2, part.num_rows - num_rows}
            with closing(ArrayFiles()) as files:
                batches += [
                    _read_batch(files, part, self.schema, first, first + num_rows)
                    for first in ({0} if part.stream_bytes else sorted(starts))
                ]
        num_bytes, num_rows = sum(batch.nbytes for batch in batches), sum(batch.num_rows for batch in batches)
        return -(-num_bytes // max(1, num_rows)) + ROW_FIELD.type.bit_width // 8

    @cached_property
    def min_bytes(self) -> int:
        return max(part.share_bytes(_MIN_BATCH_BYTES) for part in self.parts)

    @cached_property
    def ample_bytes(self) -> int:
        return max(part.share_bytes(BLOCK_BYTES) for part in self.parts)

    @cached_property
    def block_bytes(self) -> int:
        return max(
            max(part.given_row_bytes, min(BLOCK_BYTES, part.num_rows * part.given_row_bytes))
            for part in self.parts
        )

    def decoder(self, share: Share) -> BlockDecoder:
        return NumpyDecoder(self, share)


def scan_numpy(
    reading: ReadingSection,  # noqa: ARG001 - every format is scanned alike
    files: Sequence[DataFile],
    wanted: ReadRequest,
) -> ScannedFiles:
    """Read the headers of all arrays; parts without rows have no types to disagree with."""
    parts: list[Part] = []
    schema: pa.Schema | None = None
    columns, first_path = wanted.columns, files[0].path
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
        part_file = DataFile(name, sum(file.size_bytes for file in group))
        parts.append(Part.of(part_file, group, {column: arrays[column] for column in names}))
        if parts[-1].num_rows or (schema is None and index == len(groups) - 1):
            types = pa.schema(
                [(column, _type_of(array, column)) for column, array in parts[-1].arrays.items()]
            )
            first_path = name if schema is None else first_path
            schema = join_schemas(schema, first_path, types, name)
            columns = schema.names
    if schema is None:
        raise DataError("no NumPy files are given")
    return ScannedNumpy(tuple(parts), schema)


def _type_of(array: StoredArray, column: str) -> Any:
    found = arrow_type(array.dtype, array.shape, array.path, column)
    if array.member is not None and array.is_column_major:
        raise DataError.at(
            "is compressed in column-major order, which has no rows to read; write it with np.ascontiguousarray",
            file=array.path,
            column=column,
        )
    return found


def _read_batch(files: ArrayFiles, part: Part, schema: pa.Schema, first: int, end: int) -> pa.RecordBatch:
    columns = []
    for name in schema.names:
        array = part.arrays[name]
        columns.append(to_arrow(files.rows(array, first, end), array.path, name, first))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class NumpyDecoder(BlockDecoder):
    """Open files, and the bytes of the batch in work and of the one before."""

    def __init__(self, scanned: ScannedNumpy, share: Share) -> None:
        self._scanned = scanned
        self._lease = RollingLease(share)
        self._files = ArrayFiles()
        self._batch_rows = []
        for part in scanned.parts:
            row_bytes = part.given_row_bytes + part.reading_row_bytes
            fitting_rows = (share.limit_bytes - part.stream_bytes) // row_bytes
            if fitting_rows < 1:
                raise BudgetExceeded(
                    f"{part.file.path}: reading a row takes {format_size(part.share_bytes(0))}, but {share.name} may "
                    f"hold {format_size(share.limit_bytes)}; raise {share.setting}, or read fewer columns"
                )
            self._batch_rows.append(min(fitting_rows, max(1, BLOCK_BYTES // part.given_row_bytes)))

    def close(self) -> None:
        self._lease.close()
        self._files.close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        blocks = self._scanned.blocks
        index, start = int(blocks.file_index[block]), int(blocks.first_row[block])
        part, batch_rows = self._scanned.parts[index], self._batch_rows[index]
        for first in range(start + first_row, start + end_row, batch_rows):
            end = min(first + batch_rows, start + end_row)
            needed_bytes = part.stream_bytes + (end - first) * part.reading_row_bytes
            self._lease.move_on(needed_bytes, retained_bytes=(end - first) * part.given_row_bytes)
            yield _read_batch(self._files, part, self._scanned.schema, first, end)
