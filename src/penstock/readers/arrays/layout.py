"""Which arrays of which files are the columns of the data set, and how their rows are cut into blocks."""

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.readers.arrays.naming import ColumnNames, PartKey
from penstock.readers.arrays.npy import StoredArray
from penstock.readers.arrays.values import arrow_type
from penstock.readers.columns import join_schemas, project
from penstock.readers.files import COMPRESSIONS, DataFile
from penstock.readers.fingerprints import Fingerprint, ends_checksum, fingerprint

BLOCK_BYTES = 8 * MIB
"""About what the wanted columns of a block take: large enough to be read fast, small enough to be mixed well."""


@dataclass(frozen=True, slots=True)
class Part:
    """Arrays that belong together, row by row."""

    file: DataFile
    """What the part is called: its file, or the folder of several."""
    arrays: Mapping[str, StoredArray]
    """The wanted ones."""
    num_rows: int
    fingerprint: Fingerprint

    @property
    def is_stream(self) -> bool:
        """Whether an array can only be read from its start on; then the whole part is one block."""
        return any(array.member is not None for array in self.arrays.values())


@dataclass(frozen=True, slots=True)
class ArraysLayout:
    """All parts, and the columns that they agree on."""

    parts: tuple[Part, ...]
    schema: pa.Schema


def read_layout(files: Sequence[DataFile], columns: Sequence[str] | None) -> ArraysLayout:
    """Read the headers of all arrays; parts without rows have no types to disagree with."""
    parts: list[Part] = []
    schema: pa.Schema | None = None
    first_file = files[0]
    column_names = ColumnNames()
    groups = group_files(files, column_names)
    for index, group in enumerate(groups):
        arrays = _arrays_of(group, column_names)
        name = group[0].path if len(group) == 1 else str(column_names.part_of(group[0]))
        names = _wanted_names(arrays, columns, name)
        wanted = {column: arrays[column] for column in names}
        num_rows = check_lengths({array.place: array for array in wanted.values()})
        parts.append(_part(DataFile(name, sum(file.size_bytes for file in group)), group, wanted, num_rows))
        is_last_hope = schema is None and index == len(groups) - 1
        if num_rows or is_last_hope:
            types = pa.schema([(column, _type_of(array, column)) for column, array in wanted.items()])
            first_file = parts[-1].file if schema is None else first_file
            schema = join_schemas(schema, first_file.path, types, name)
            columns = schema.names
    if schema is None:
        raise DataError("no NumPy files are given")
    return ArraysLayout(tuple(parts), schema)


def group_files(files: Sequence[DataFile], column_names: ColumnNames) -> list[list[DataFile]]:
    """The files of each part: the `.npy` files of one folder, and `.npz` files beside them; else an `.npz` alone.

    The files of a store belong together by splits.

    >>> files = [DataFile(path, 1) for path in ("a/x.npy", "a/y.npy", "b/1.npz", "b/2.npz")]
    >>> [[file.path for file in group] for group in group_files(files, ColumnNames())]
    [['a/x.npy', 'a/y.npy'], ['b/1.npz'], ['b/2.npz']]
    """
    parts = [column_names.part_of(file) for file in files]
    of_plain_files = {part for part, file in zip(parts, files, strict=True) if file.suffix != ".npz"}
    groups: dict[PartKey, list[DataFile]] = {}
    for part, file in zip(parts, files, strict=True):
        is_alone = part not in of_plain_files and part.split is None
        groups.setdefault(PartKey(file.path) if is_alone else part, []).append(file)
    return list(groups.values())


class HasRows(Protocol):
    """Something with a number of rows."""

    @property
    def num_rows(self) -> int: ...


def check_lengths(arrays: Mapping[str, HasRows]) -> int:
    """The number of rows that all arrays have; they are given by what to call them in messages."""
    first_name, first = next(iter(arrays.items()))
    for name, array in arrays.items():
        if array.num_rows != first.num_rows:
            raise DataError(
                f"{first_name} has {first.num_rows} rows but {name} has {array.num_rows}; arrays that are read "
                "together need equal lengths"
            )
    return first.num_rows


def row_ranges(num_rows: int, row_bytes: int, is_stream: bool = False) -> Iterator[tuple[int, int]]:
    """(first row, number of rows) of each block."""
    block_rows = max(1, num_rows if is_stream else BLOCK_BYTES // max(1, row_bytes))
    return ((first, min(block_rows, num_rows - first)) for first in range(0, num_rows, block_rows))


def _arrays_of(group: Sequence[DataFile], column_names: ColumnNames) -> dict[str, StoredArray]:
    arrays: dict[str, StoredArray] = {}
    for file in group:
        if os.path.splitext(file.name)[1] in COMPRESSIONS:
            raise DataError(f"{file.path}: cannot be entered at a row; unpack it, or write a compressed .npz")
        found = column_names.columns(file)
        for name in found.keys() & arrays.keys():
            raise DataError(f"{arrays[name].path} and {file.path} both have the column '{name}'; rename one")
        arrays |= found
    return arrays


def _wanted_names(arrays: Mapping[str, StoredArray], columns: Sequence[str] | None, name: str) -> list[str]:
    as_text = pa.schema([(column, pa.string()) for column in arrays])
    return project(as_text, columns, name).names


def _type_of(array: StoredArray, column: str) -> Any:
    found = arrow_type(array.dtype, array.shape, array.path, column)
    if array.member is not None and array.is_column_major:
        raise DataError.at(
            "is compressed in column-major order, which has no rows to read; write it with np.ascontiguousarray",
            file=array.path,
            column=column,
        )
    return found


def _part(
    name: DataFile, group: Sequence[DataFile], arrays: Mapping[str, StoredArray], num_rows: int
) -> Part:
    checksum = ends_checksum(group[0])
    for file in group[1:]:
        checksum = zlib.crc32(f"{file.name} {ends_checksum(file)}".encode(), checksum)
    return Part(name, arrays, num_rows, fingerprint(name, num_rows, checksum))
