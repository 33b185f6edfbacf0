"""Where the rows of a batch come from: for messages, and for random numbers that follow the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from penstock.pipeline.dataset.ragged import Int64Array
from penstock.readers.origin import ROW_COLUMN, locate


@dataclass(frozen=True)
class Origin:
    """The epoch and the rows of a batch that was read; looked at only when somebody asks."""

    epoch: int
    record_batch: pa.RecordBatch
    file_paths: Sequence[str]

    @property
    def num_rows(self) -> int:
        """Rows of the batch."""
        return self.record_batch.num_rows

    @cached_property
    def row_ids(self) -> Int64Array:
        """What `readers.origin` says of each row."""
        return np.asarray(self.record_batch.column(ROW_COLUMN))

    def of_row(self, row: int) -> tuple[str, int]:
        """The file of a row of the batch, and its number there."""
        file_index, row_in_file = locate(int(self.row_ids[row]))
        return self.file_paths[file_index], row_in_file

    def describe(self, row: int) -> str:
        """A row of the batch, for messages."""
        file, row_in_file = self.of_row(row)
        return f"row {row_in_file} of {file}"
