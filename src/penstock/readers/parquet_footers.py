"""The footers of Parquet files: what a scan learns of them before a value is read.

Files of one data set most often have one schema. It is looked at once, and again where a footer has another one.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import DataFile, is_uri
from penstock.readers.storage import open_input, read_at

STREAM_BYTES = 64 * KIB  # read at once from the file, per column
_USUAL_PAGE_BYTES = MIB + 32 * KIB  # what writers make a page or a dictionary by default, and a little more
_WIDTH_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_DECIMAL_BYTES, _VALIDITY_BYTES, _OFFSET_BYTES = 32, 1, 4
_TAIL_BYTES = 64 * KIB  # most footers are shorter: one read
_ENDING_BYTES = 8  # the length of the footer and a magic word


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
    stored_ranges: tuple[tuple[int, int], ...]  # of column chunks in a store, by offset and bytes; else none


class Leaf(NamedTuple):
    """A physical column."""

    number: int
    name: str  # of the column that it belongs to
    path: str
    depth: int
    is_string: bool
    value_bytes: int


class Footer(NamedTuple):
    metadata: pq.FileMetaData
    checksum: int
    """Of its bytes: the sizes, offsets and statistics of all columns."""
    is_remote: bool

    def has_schema_of(self, other: "Footer | None") -> bool:
        """Also the types that Arrow keeps beside those of Parquet must be the same."""
        if other is None or not self.metadata.schema.equals(other.metadata.schema):
            return False
        own, others = ((footer.metadata.metadata or {}).get(b"ARROW:schema") for footer in (self, other))
        return own == others


def read_footer(file: DataFile) -> Footer:
    with open_input(file.path) as source:
        tail = read_at(source, _TAIL_BYTES, max(0, file.size_bytes - _TAIL_BYTES))
        footer_bytes = int.from_bytes(tail[-_ENDING_BYTES:-4], "little") + _ENDING_BYTES
        if len(tail) < footer_bytes <= file.size_bytes:
            tail = read_at(source, footer_bytes, file.size_bytes - footer_bytes)
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file.path}: is not a whole Parquet file: {one_line(error)}; write it again, or leave it out"
        ) from error
    return Footer(metadata, zlib.crc32(tail[-footer_bytes:-_ENDING_BYTES]), is_uri(file.path))


def one_line(error: Exception) -> str:
    return str(error).splitlines()[0].partition(". ")[0].rstrip(".") if str(error) else type(error).__name__


def leaves_of(schema: pq.ParquetSchema, columns: Sequence[str]) -> list[Leaf]:
    """The physical columns of the requested ones: a list of lists or a map has several levels."""
    requested, leaves = frozenset(columns), []
    for index in range(len(schema)):
        column = schema.column(index)
        name = column.path if column.path in requested else column.path.partition(".")[0]
        if name in requested:
            is_decimal = column.logical_type.type == "DECIMAL"
            is_string = column.physical_type == "BYTE_ARRAY" and not is_decimal
            width = _DECIMAL_BYTES if is_decimal else _WIDTH_BYTES.get(column.physical_type) or column.length
            value_bytes = _VALIDITY_BYTES + (_OFFSET_BYTES if is_string else width or _DECIMAL_BYTES)
            depth = column.max_repetition_level
            leaves.append(Leaf(index, name, column.path, depth, is_string, value_bytes))
    return leaves


def row_groups(footer: Footer, file_index: int, leaves: Sequence[Leaf]) -> Iterator[RowGroup]:
    metadata, first_row = footer.metadata, 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        num_rows = group.num_rows
        stored_bytes = number_bytes = page_bytes = max_page_bytes = 0
        strings, ranges = [], []
        for leaf, name, path, depth, is_string, value_bytes in leaves:
            chunk = group.column(leaf)
            size, num_values = chunk.total_uncompressed_size, chunk.num_values
            stored_bytes += chunk.total_compressed_size
            number_bytes += depth * (num_values + num_rows) * (_OFFSET_BYTES + _VALIDITY_BYTES)
            number_bytes += num_values * value_bytes
            if is_string:
                strings.append(StringChunk(name, path, num_values, size, chunk.has_dictionary_page))
            else:
                chunk_bytes = page_size(size, chunk.has_dictionary_page)
                page_bytes += chunk_bytes
                max_page_bytes = max(max_page_bytes, chunk_bytes)
            if footer.is_remote:
                start = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
                ranges.append((start, chunk.total_compressed_size))
        if num_rows:
            sizes = (stored_bytes, number_bytes, page_bytes, max_page_bytes)
            yield RowGroup(file_index, index, first_row, num_rows, *sizes, tuple(strings), tuple(ranges))
        first_row += num_rows


def page_size(uncompressed_bytes: int, has_dictionary: bool, usual_bytes: int = 0) -> int:
    """What a column holds beside its values while it is decoded, at most, unless its pages are unusual."""
    page_bytes = min(uncompressed_bytes, max(usual_bytes, _USUAL_PAGE_BYTES))
    held_bytes = page_bytes + min(page_bytes, STREAM_BYTES)
    if has_dictionary:  # It is there as read and as decoded.
        held_bytes += 2 * min(uncompressed_bytes, _USUAL_PAGE_BYTES)
    return min(held_bytes, 2 * uncompressed_bytes + STREAM_BYTES)
