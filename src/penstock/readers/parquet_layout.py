"""What the footers of Parquet files say: row groups, their rows, and what decoding them takes.

A footer tells the bytes of a column as encoded. Decoded it may be many times larger: a dictionary-encoded
id takes a few bits in the file and 8 bytes in memory. So fixed-width columns are counted by their width,
and texts by a look at the first rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.columns import check_same_types, project
from penstock.readers.files import DataFile

_WIDTH_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_PAGE_BYTES = 9 * MIB // 4
"""What one column holds while it is being decoded: a page, its decompressed form, a dictionary (measured)."""
_PROBED_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Block:
    """One row group of one file: what is read, permuted and resumed as a unit."""

    file_index: int
    row_group: int
    first_row: int
    num_rows: int
    decoded_bytes: int
    """Estimate of the wanted columns in memory."""
    paging_bytes: int
    """Estimate of what decoding holds beside the rows: the pages of all wanted columns at once."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All row groups of a data set, and the columns that are wanted of them."""

    schema: pa.Schema
    """The wanted columns, as they are given out."""
    blocks: tuple[Block, ...]
    file_rows: tuple[int, ...]


def open_file(file: DataFile) -> pq.ParquetFile:
    """A Parquet file that is read in small pieces.

    Without `buffer_size` Arrow loads the column chunks of a row group whole, compressed, even with
    `pre_buffer` off: 206 MB instead of 87 MB for a file that is one row group of a million rows and 40
    columns.
    """
    try:
        return pq.ParquetFile(
            file.path, pre_buffer=False, buffer_size=64 * KIB, page_checksum_verification=True
        )
    except PermissionError as error:
        raise DataError(f"{file.path}: no permission to read this file") from error
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file.path}: is not a whole Parquet file: {one_line(error)}; write it again, or leave it out"
        ) from error


def one_line(error: Exception) -> str:
    """The first sentence of a library's error."""
    return str(error).splitlines()[0].partition(". ")[0].rstrip(".") if str(error) else type(error).__name__


def read_layout(files: Sequence[DataFile], columns: Sequence[str] | None) -> Layout:
    """Read every footer; check that each file has the wanted columns, with the same types."""
    schema: pa.Schema | None = None
    blocks: list[Block] = []
    file_rows: list[int] = []
    text_row_bytes: float | None = None
    for file_index, file in enumerate(files):
        with open_file(file) as opened:
            wanted = project(opened.schema_arrow, columns, file.path)
            schema, columns = schema or wanted, wanted.names
            check_same_types(schema, files[0].path, wanted, file.path)
            if text_row_bytes is None and opened.metadata.num_rows:
                text_row_bytes = _text_row_bytes(opened, schema, file)
            blocks += _blocks_of(opened.metadata, file_index, schema, text_row_bytes or 0.0)
            file_rows.append(opened.metadata.num_rows)
    if schema is None:
        raise DataError("no Parquet files are given")
    return Layout(schema, tuple(blocks), tuple(file_rows))


def _blocks_of(
    metadata: pq.FileMetaData, file_index: int, schema: pa.Schema, text_row_bytes: float
) -> Iterator[Block]:
    leaves, first_row = _leaves(metadata, schema), 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        chunks = [group.column(leaf) for leaf in leaves]
        fixed_bytes = sum(chunk.num_values * _WIDTH_BYTES.get(chunk.physical_type, 0) for chunk in chunks)
        encoded_bytes = sum(
            chunk.total_uncompressed_size for chunk in chunks if chunk.physical_type not in _WIDTH_BYTES
        )
        decoded_bytes = fixed_bytes + max(encoded_bytes, int(text_row_bytes * group.num_rows))
        paging_bytes = sum(min(2 * chunk.total_uncompressed_size, _PAGE_BYTES) for chunk in chunks)
        if group.num_rows:
            yield Block(file_index, index, first_row, group.num_rows, decoded_bytes, paging_bytes)
        first_row += group.num_rows


def _leaves(metadata: pq.FileMetaData, schema: pa.Schema) -> list[int]:
    """The physical columns of the wanted ones: a list of lists or a map has several levels."""
    wanted = frozenset(schema.names)
    paths = [metadata.schema.column(leaf).path for leaf in range(metadata.num_columns)]
    return [leaf for leaf, path in enumerate(paths) if path in wanted or path.partition(".")[0] in wanted]


def _text_row_bytes(opened: pq.ParquetFile, schema: pa.Schema, file: DataFile) -> float:
    """Bytes in memory, per row, of the columns whose width the footer does not tell; from the first rows."""
    columns = [opened.metadata.schema.column(leaf) for leaf in _leaves(opened.metadata, schema)]
    texts = {column.path.partition(".")[0] for column in columns if column.physical_type not in _WIDTH_BYTES}
    names = [name for name in schema.names if name in texts or name.partition(".")[0] in texts]
    if not names:
        return 0.0
    with reading_file(file):
        probe = next(opened.iter_batches(_PROBED_ROWS, columns=names, use_threads=False))
    return probe.nbytes / probe.num_rows


@contextmanager
def reading_file(file: DataFile) -> Iterator[None]:
    """Turns what Arrow raises over a torn or damaged file into an error that names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file.path}: cannot be read to its end, it is damaged: {one_line(error)}; write it again"
        ) from error
