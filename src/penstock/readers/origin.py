"""Where a row came from, as one number that travels with it.

The last column of every record batch of a reader is `ROW_COLUMN`: the index of the file in the list of files,
and the row in that file, both counted from 0. It survives slicing, joining and shuffling.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ROW_COLUMN = "__row__"
ROW_FIELD = pa.field(ROW_COLUMN, pa.int64(), nullable=False)
_ROW_BITS = 40
_ROW_MASK = (1 << _ROW_BITS) - 1


def row_ids(file_index: int, first_row: int, num_rows: int) -> pa.Int64Array:
    """The numbers of consecutive rows of one file."""
    start = (file_index << _ROW_BITS) | first_row
    return pa.array(np.arange(start, start + num_rows), pa.int64())


def ids_of_rows(file_index: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of rows of any files, in the order of files and rows."""
    return (file_index << _ROW_BITS) | row


def with_row_ids(batch: pa.RecordBatch, file_index: int, first_row: int) -> pa.RecordBatch:
    """The batch with the origin of its rows as its last column."""
    return batch.append_column(ROW_FIELD, row_ids(file_index, first_row, batch.num_rows))


def locate(row_id: int) -> tuple[int, int]:
    """The file's index and the row in that file.

    >>> locate((3 << 40) | 17)
    (3, 17)
    """
    return int(row_id) >> _ROW_BITS, int(row_id) & _ROW_MASK


def file_and_row(row_id: int, file_paths: Sequence[str]) -> tuple[str, int]:
    """The file, by its number where its path is not known, and the row in it."""
    file_index, row = locate(row_id)
    return file_paths[file_index] if file_index < len(file_paths) else f"file {file_index}", row


def describe_rows(ids: NDArray[np.int64], file_paths: Sequence[str]) -> str:
    """Which rows these are, for a message."""
    file, row = file_and_row(ids[0], file_paths)
    if bool((np.diff(ids) == 1).all()):
        return f"rows {row} to {row + len(ids) - 1} of {file}"
    return f"{len(ids)} scattered rows, the first of them row {row} of {file}"
