"""Open Parquet files: what their footers say of row groups, and how large strings are, from a sample."""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import DataFile, is_uri
from penstock.readers.storage import StoreFile, open_input, read_at

_STREAM_BYTES = 64 * KIB  # read at once from the file, per column
_USUAL_PAGE_BYTES = MIB + 32 * KIB
"""What writers make a page or a dictionary by default, and a little more."""
_WIDTH_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_DECIMAL_BYTES, _VALIDITY_BYTES, _OFFSET_BYTES = 32, 1, 4
_SAMPLED_GROUPS, _SAMPLED_STORE_GROUPS = 8, 2
"""In a store each look is a request: fewer row groups, and those whole, as stored."""
_SAMPLED_ROWS, _SAMPLED_BYTES = 1024, 8 * MIB
"""Of a row group with fewer bytes as stored all rows are sampled, of a larger one so many."""
_MAX_FETCHED_BYTES = 32 * MIB
_SAMPLED_COLUMNS = 8
"""Decoded together: the pages of all columns of a wide table would take more than the rows."""


class OpenParquet(pq.ParquetFile):
    """A Parquet file that closes what it is read from."""

    def __init__(self, file: DataFile, read_dictionary: Sequence[str] = ()) -> None:
        self.source = open_input(file.path)
        try:
            # Without `buffer_size` Arrow loads the column chunks of a row group whole, compressed, even with
            # `pre_buffer` off: 206 MB instead of 87 MB for one row group of a million rows and 40 columns.
            super().__init__(
                self.source,
                pre_buffer=False,
                buffer_size=_STREAM_BYTES,
                page_checksum_verification=True,
                read_dictionary=list(read_dictionary),
            )
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{file.path}: is not a whole Parquet file: {_one_line(error)}; write it again, or leave it out"
            ) from error

    def close(self, force: bool = True) -> None:
        super().close(force)

    @contextmanager
    def holding(self, row_group: int, columns: Sequence[str]) -> Iterator[None]:
        """Have columns of a row group in memory as stored: in an object store each read is a request."""
        if not columns or not isinstance(self.source, StoreFile):
            yield
            return
        group = self.metadata.row_group(row_group)
        chunks = [group.column(leaf) for leaf, _ in _leaves(self.metadata, columns)]
        starts = [
            min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
            for chunk in chunks
        ]
        remote = self.source.remote
        remote.hold(zip(starts, (chunk.total_compressed_size for chunk in chunks), strict=True))
        try:
            yield
        finally:
            remote.hold([])


@contextmanager
def reading_file(file: DataFile) -> Iterator[None]:
    """Turns what Arrow raises over a torn or damaged file into an error that names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file.path}: cannot be read to its end, it is damaged: {_one_line(error)}; write it again"
        ) from error


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0].partition(". ")[0].rstrip(".") if str(error) else type(error).__name__


def footer_checksum(file: DataFile) -> int:
    """The footer holds the sizes, offsets and statistics of all columns; behind it are its length and a magic word."""
    with open_input(file.path) as source:
        tail_offset = max(0, file.size_bytes - 8)
        footer_bytes = int.from_bytes(read_at(source, 4, tail_offset), "little")
        return zlib.crc32(read_at(source, footer_bytes, max(0, tail_offset - footer_bytes)))


class StringChunk(NamedTuple):
    """A physical column with strings in a row group: what they take in memory is not in the footer."""

    column: str
    path: str
    num_values: int
    uncompressed_bytes: int
    has_dictionary: bool


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of one file: what is read, permuted and resumed as a unit. All bytes are of requested columns."""

    file_index: int
    index: int
    first_row: int
    num_rows: int
    stored_bytes: int
    number_bytes: int  # in memory, of everything but the characters of strings
    page_bytes: int  # what pages and dictionaries of numbers take while all columns are decoded at once
    max_page_bytes: int  # the same of the largest column
    strings: tuple[StringChunk, ...]


def _leaves(metadata: pq.FileMetaData, columns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The physical columns of the requested ones: a list of lists or a map has several levels."""
    wanted = frozenset(columns)
    for leaf in range(metadata.num_columns):
        path = metadata.schema.column(leaf).path
        name = path if path in wanted else path.partition(".")[0]
        if name in wanted:
            yield leaf, name


def read_row_groups(metadata: pq.FileMetaData, file_index: int, columns: Sequence[str]) -> Iterator[RowGroup]:
    wanted = []
    for leaf, name in _leaves(metadata, columns):
        column = metadata.schema.column(leaf)
        is_decimal = column.logical_type.type == "DECIMAL"
        is_string = column.physical_type == "BYTE_ARRAY" and not is_decimal
        width = _DECIMAL_BYTES if is_decimal else _WIDTH_BYTES.get(column.physical_type) or column.length
        value_bytes = _VALIDITY_BYTES + (_OFFSET_BYTES if is_string else width or _DECIMAL_BYTES)
        wanted.append((leaf, name, column.path, column.max_repetition_level, is_string, value_bytes))
    first_row = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        num_rows = group.num_rows
        stored_bytes = number_bytes = page_bytes = max_page_bytes = 0
        strings = []
        for leaf, name, path, depth, is_string, value_bytes in wanted:
            chunk = group.column(leaf)
            size, num_values, has_words = (
                chunk.total_uncompressed_size,
                chunk.num_values,
                chunk.has_dictionary_page,
            )
            stored_bytes += chunk.total_compressed_size
            number_bytes += depth * (num_values + num_rows) * (_OFFSET_BYTES + _VALIDITY_BYTES)
            number_bytes += num_values * value_bytes
            if is_string:
                strings.append(StringChunk(name, path, num_values, size, has_words))
            else:
                chunk_bytes = page_size(size, has_words)
                page_bytes += chunk_bytes
                max_page_bytes = max(max_page_bytes, chunk_bytes)
        if num_rows:
            sizes = (stored_bytes, number_bytes, page_bytes, max_page_bytes)
            yield RowGroup(file_index, index, first_row, num_rows, *sizes, tuple(strings))
        first_row += num_rows


def page_size(uncompressed_bytes: int, has_dictionary: bool, usual_bytes: int = 0) -> int:
    """What a column holds beside its values while it is decoded, at most, unless its pages are unusual."""
    page_bytes = min(uncompressed_bytes, max(usual_bytes, _USUAL_PAGE_BYTES))
    held_bytes = page_bytes + min(page_bytes, _STREAM_BYTES)
    if has_dictionary:  # It is there as read and as decoded.
        held_bytes += 2 * min(uncompressed_bytes, _USUAL_PAGE_BYTES)
    return min(held_bytes, 2 * uncompressed_bytes + _STREAM_BYTES)


class Sample(NamedTuple):
    row_bytes: float
    string_bytes: dict[str, tuple[float, float]]
    """For each column with strings their characters in a row: the mean, and the most over about a thousand rows."""


def take_sample(files: Sequence[DataFile], schema: pa.Schema, groups: Sequence[RowGroup]) -> Sample:
    """Decode a few row groups. Strings stay in dictionaries: they may be larger in memory than in the file."""
    is_remote = any(is_uri(file.path) for file in files)
    num_groups = min(len(groups), _SAMPLED_STORE_GROUPS if is_remote else _SAMPLED_GROUPS)
    all_rows, all_bytes = 0, 0.0
    strings: dict[str, tuple[float, float]] = {}
    for group in (groups[index] for index in np.linspace(0, len(groups) - 1, num_groups, dtype=int)):
        file = files[group.file_index]
        string_bytes = sum(chunk.uncompressed_bytes for chunk in group.strings)
        is_small = group.number_bytes + string_bytes <= _SAMPLED_BYTES
        num_rows = group.num_rows if is_small else min(group.num_rows, _SAMPLED_ROWS)
        fetched = schema.names if group.stored_bytes <= _MAX_FETCHED_BYTES else ()
        coded = [chunk.path for chunk in group.strings]
        with OpenParquet(file, coded) as opened, reading_file(file), opened.holding(group.index, fetched):
            for start in range(0, len(schema), _SAMPLED_COLUMNS):
                names = schema.names[start : start + _SAMPLED_COLUMNS]
                batch = next(opened.iter_batches(num_rows, [group.index], names, use_threads=False))
                for name in names:
                    array: Any = batch.column(name)
                    ends: Any
                    ends, dictionary_bytes = _string_ends(array)
                    if ends is None or pa.types.is_dictionary(schema.field(name).type):
                        ends = np.linspace(0, dictionary_bytes, batch.num_rows + 1)
                    # Indices into a dictionary take as much as the offsets of strings.
                    num_bytes = array.nbytes + int(ends[-1]) - dictionary_bytes
                    all_bytes += num_bytes * group.num_rows / batch.num_rows
                    window = min(_SAMPLED_ROWS, batch.num_rows)
                    found = ends[-1] / batch.num_rows, (ends[window:] - ends[:-window]).max() / window
                    known = strings.get(name, found)
                    strings[name] = max(known[0], found[0]), max(known[1], found[1])
        all_rows += group.num_rows
    return Sample(all_bytes / max(1, all_rows), strings)


def _string_ends(array: Any) -> tuple[NDArray[np.int64] | None, int]:
    """Bytes of coded strings in the first 0, 1, 2, ... values (None: there are none), and of their dictionaries."""
    types = pa.types
    if types.is_map(array.type):
        found = [_string_ends(array.keys), _string_ends(array.items)]
        ends: Any = sum(ends for ends, _ in found if ends is not None)
        has_strings = any(ends is not None for ends, _ in found)
        return ends[np.asarray(array.offsets)] if has_strings else None, found[0][1] + found[1][1]
    is_fixed = types.is_fixed_size_list(array.type)
    if is_fixed or types.is_list(array.type) or types.is_large_list(array.type):
        ends, dictionary_bytes = _string_ends(array.values)
        starts = np.arange(len(array) + 1) * array.type.list_size if is_fixed else np.asarray(array.offsets)
        return None if ends is None else ends[starts], dictionary_bytes
    if not types.is_dictionary(array.type):
        return None, 0
    kind, dictionary_bytes = array.type.value_type, int(array.dictionary.nbytes)
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)):
        return None, dictionary_bytes
    lengths = pc.take(pc.binary_length(array.dictionary), array.indices)
    ends = np.zeros(len(array) + 1, np.int64)
    np.cumsum(np.asarray(pc.fill_null(lengths, 0)), out=ends[1:])
    return ends, dictionary_bytes
