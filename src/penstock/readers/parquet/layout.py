"""What the footers of Parquet files say: row groups, their rows, and what decoding them takes at most.

A footer tells the bytes of a column as encoded. Decoded it may be thousands of times larger: a text that stands
once in a dictionary takes a few bits per row in the file. So such texts are decoded as they stand, as a
dictionary and numbers into it, which the footer does bound; `texts.py` writes them out a few rows at a time.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.readers.columns import join_schemas, project
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint, fingerprint, parquet_checksum
from penstock.readers.parquet.pages import STREAM_BYTES, ChunkPages, PagesOf, dictionary_pages, first_pages
from penstock.readers.parquet.stored import OpenParquet, leaves
from penstock.readers.storage import open_input
from penstock.readers.uris import is_uri

_WIDTH_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_DECIMAL_BYTES = 32
_VALIDITY_BYTES = 1
_OFFSET_BYTES = 4
_MEASURING_BYTES = 16
"""Per value of a text in a dictionary: its number there, and its length while rows are measured."""
_HASHED_BYTES = 96
"""Per distinct text while Arrow builds a dictionary (measured)."""
_NUMBER_BYTES = 4
"""At most, of a number into a dictionary and of its levels, as encoded."""
_UNBOUNDED_ENCODING = "DELTA_BYTE_ARRAY"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of one file: what is read, permuted and resumed as a unit."""

    file_index: int
    index: int
    first_row: int
    num_rows: int
    decoded_bytes: int
    """At most what the wanted columns take in memory, texts in dictionaries as such."""
    paging_bytes: int
    """What decoding holds beside the rows: the pages of all wanted columns at once."""
    column_bytes: int = 0
    """The largest part of `paging_bytes` that is of one column."""
    dictionary_bytes: int = 0
    """The part of `decoded_bytes` and `hashing_bytes` that does not shrink with the rows."""
    hashing_bytes: int = 0
    """What building the dictionaries takes, while they are built."""
    has_coded_texts: bool = False
    """Whether rows grow when they are given out, because texts are written out."""
    most_paging_bytes: int = 2**63
    """What `paging_bytes` cannot exceed, however large the pages are."""
    stored_bytes: int = 0
    """What the wanted columns take in the file."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All row groups of a data set, and the columns that are wanted of them."""

    schema: pa.Schema
    """The wanted columns, as they are given out."""
    blocks: tuple[RowGroup, ...]
    file_rows: tuple[int, ...]
    texts: tuple["TextColumns", ...]
    """Per file: the texts that may be far larger in memory than in the file."""
    fingerprints: tuple[Fingerprint, ...]


class TextColumns(NamedTuple):
    """Physical columns with texts in dictionaries, by what the dictionaries say of their size."""

    coded: tuple[str, ...]
    """All texts are in dictionaries: they are decoded as such."""
    mixed: tuple[str, ...]
    """A dictionary grew full, and the rest stands as it is: decoding all as dictionaries would hold every text
    of the row group, so they are decoded as texts, in batches bounded by the longest text of the dictionary."""


class ColumnCost(NamedTuple):
    """What decoding one physical column of a row group takes."""

    decoded_bytes: int
    dictionary_bytes: int
    paging_bytes: int
    hashing_bytes: int
    stored_bytes: int
    """As it stands in the file."""
    most_paging_bytes: int
    """What `paging_bytes` cannot exceed: a dictionary and a page are not larger than all pages together."""


def open_file(file: DataFile, coded_texts: Sequence[str] = ()) -> OpenParquet:
    """A Parquet file that is read in small pieces.

    Without `buffer_size` Arrow loads the column chunks of a row group whole, compressed, even with
    `pre_buffer` off: 206 MB instead of 87 MB for a file that is one row group of a million rows and 40
    columns.
    """
    try:
        return OpenParquet(
            open_input(file.path),
            pre_buffer=False,
            buffer_size=STREAM_BYTES,
            page_checksum_verification=True,
            read_dictionary=list(coded_texts),
        )
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file.path}: is not a whole Parquet file: {one_line(error)}; write it again, or leave it out"
        ) from error


def one_line(error: Exception) -> str:
    """The first sentence of a library's error."""
    return str(error).splitlines()[0].partition(". ")[0].rstrip(".") if str(error) else type(error).__name__


def read_layout(files: Sequence[DataFile], columns: Sequence[str] | None) -> Layout:
    """Read all footers, and check that every file has the columns and the types of the first.

    A file without rows has nothing to disagree with: writers often know no types for it.
    """
    schema: pa.Schema | None = None
    blocks: list[RowGroup] = []
    file_rows: list[int] = []
    texts: list[TextColumns] = []
    first_file = files[0]
    for file_index, file in enumerate(files):
        with open_file(file) as opened:
            is_last_hope = schema is None and file_index == len(files) - 1
            if opened.metadata.num_rows == 0 and not is_last_hope:
                texts.append(TextColumns((), ()))
                file_rows.append(0)
                continue
            if schema is None:
                first_file = file
            wanted = project(opened.schema_arrow, columns, file.path)
            schema = join_schemas(schema, first_file.path, wanted, file.path)
            columns = schema.names
            # In a store each look at a page is a request: only what bounds texts is fetched, all at once.
            pages_of = dictionary_pages if is_uri(file.path) else first_pages
            opened.hold_dictionary_headers(columns)
            texts.append(_text_columns(opened, columns, pages_of))
            blocks += _blocks_of(opened, file_index, columns, texts[-1].coded, pages_of)
            file_rows.append(opened.metadata.num_rows)
    if schema is None:
        raise DataError("no Parquet files are given")
    fingerprints = tuple(
        fingerprint(file, rows, parquet_checksum(file)) for file, rows in zip(files, file_rows, strict=True)
    )
    return Layout(schema, tuple(blocks), tuple(file_rows), tuple(texts), fingerprints)


def _blocks_of(
    opened: OpenParquet,
    file_index: int,
    columns: Sequence[str],
    coded_texts: Sequence[str],
    pages_of: PagesOf,
) -> Iterator[RowGroup]:
    first_row = 0
    metadata = opened.metadata
    for index in range(metadata.num_row_groups):
        costs = column_costs(opened, index, columns, coded_texts, pages_of).values()
        num_rows = metadata.row_group(index).num_rows
        if num_rows:
            yield RowGroup(
                file_index,
                index,
                first_row,
                num_rows,
                decoded_bytes=sum(cost.decoded_bytes for cost in costs),
                paging_bytes=sum(cost.paging_bytes for cost in costs),
                column_bytes=max(cost.paging_bytes for cost in costs),
                dictionary_bytes=sum(cost.dictionary_bytes for cost in costs),
                hashing_bytes=sum(cost.hashing_bytes for cost in costs),
                has_coded_texts=bool(coded_texts),
                most_paging_bytes=sum(cost.most_paging_bytes for cost in costs),
                stored_bytes=sum(cost.stored_bytes for cost in costs),
            )
        first_row += num_rows


def column_costs(
    opened: OpenParquet,
    row_group: int,
    columns: Sequence[str],
    coded_texts: Sequence[str],
    pages_of: PagesOf,
) -> dict[str, ColumnCost]:
    """What each wanted column of a row group takes, all its physical columns together."""
    metadata = opened.metadata
    group = metadata.row_group(row_group)
    costs = dict.fromkeys(columns, ColumnCost(0, 0, 0, 0, 0, 0))
    for leaf, name in leaves(metadata, columns):
        column, chunk = metadata.schema.column(leaf), group.column(leaf)
        pages = pages_of(opened.source, chunk)
        cost = _leaf_cost(column, chunk, pages, group.num_rows, column.path in coded_texts)
        costs[name] = ColumnCost(*(old + new for old, new in zip(costs[name], cost, strict=True)))
    return costs


def _leaf_cost(
    column: pq.ColumnSchema, chunk: pq.ColumnChunkMetaData, pages: ChunkPages, num_rows: int, is_coded: bool
) -> ColumnCost:
    values, text_bytes = chunk.num_values, chunk.total_uncompressed_size
    most_paging_bytes = 2 * chunk.total_uncompressed_size + STREAM_BYTES
    nesting_bytes = column.max_repetition_level * (values + num_rows) * (_OFFSET_BYTES + _VALIDITY_BYTES)
    if is_coded:
        distinct = min(values, pages.num_dictionary_values or text_bytes // _OFFSET_BYTES)
        return ColumnCost(
            text_bytes + values * (_OFFSET_BYTES + _MEASURING_BYTES) + nesting_bytes,
            pages.dictionary_bytes + distinct * _HASHED_BYTES,
            pages.held_bytes,
            distinct * _HASHED_BYTES,
            chunk.total_compressed_size,
            most_paging_bytes,
        )
    if _is_text(column):
        mean_bytes = pages.dictionary_bytes // max(1, pages.num_dictionary_values)
        decoded_bytes = max(text_bytes, values * mean_bytes) + values * (_OFFSET_BYTES + _VALIDITY_BYTES)
    else:
        decoded_bytes = values * (_width_bytes(column) + _VALIDITY_BYTES)
    return ColumnCost(
        decoded_bytes + nesting_bytes, 0, pages.held_bytes, 0, chunk.total_compressed_size, most_paging_bytes
    )


def _is_text(column: pq.ColumnSchema) -> bool:
    return column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL"


def _width_bytes(column: pq.ColumnSchema) -> int:
    if column.logical_type.type == "DECIMAL":
        return _DECIMAL_BYTES
    return _WIDTH_BYTES.get(column.physical_type) or column.length or _DECIMAL_BYTES


def _text_columns(opened: OpenParquet, columns: Sequence[str], pages_of: PagesOf) -> TextColumns:
    coded, mixed = [], []
    metadata = opened.metadata
    for leaf, _ in leaves(metadata, columns):
        column = metadata.schema.column(leaf)
        if not _is_text(column):
            continue
        chunks = [metadata.row_group(index).column(leaf) for index in range(metadata.num_row_groups)]
        if any(_is_mixed(chunk, pages_of(opened.source, chunk)) for chunk in chunks):
            mixed.append(column.path)
        elif any(chunk.has_dictionary_page or _UNBOUNDED_ENCODING in chunk.encodings for chunk in chunks):
            coded.append(column.path)
    return TextColumns(tuple(coded), tuple(mixed))


def _is_mixed(chunk: pq.ColumnChunkMetaData, pages: ChunkPages) -> bool:
    """Whether a chunk has more bytes than a dictionary and numbers into it can take."""
    if not chunk.has_dictionary_page or "PLAIN" not in chunk.encodings:
        return False
    numbers_bytes = chunk.num_values * _NUMBER_BYTES
    return chunk.total_uncompressed_size > pages.dictionary_bytes + numbers_bytes


@contextmanager
def reading_file(file: DataFile) -> Iterator[None]:
    """Turns what Arrow raises over a torn or damaged file into an error that names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file.path}: cannot be read to its end, it is damaged: {one_line(error)}; write it again"
        ) from error
