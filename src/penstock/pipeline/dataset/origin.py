"""Where the rows of a batch come from: for messages, and for random numbers that follow the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.pipeline.dataset.ragged import Int64Array
from penstock.readers.origin import locate


@dataclass(frozen=True, slots=True)
class Origin:
    """The epoch, and the row ids (readers.origin) of a batch."""

    epoch: int
    row_ids: Int64Array
    file_paths: Sequence[str]

    def of_row(self, row: int) -> tuple[str, int]:
        """The file of a row of the batch, and its number there."""
        file_index, row_in_file = locate(int(self.row_ids[row]))
        return self.file_paths[file_index], row_in_file

    def describe(self, row: int) -> str:
        """A row of the batch, for messages."""
        file, row_in_file = self.of_row(row)
        return f"row {row_in_file} of {file}"
