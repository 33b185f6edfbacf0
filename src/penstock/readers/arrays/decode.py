"""Row ranges of parts -> record batches, as many rows at a time as the share holds twice."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.readers.arrays.layout import BLOCK_BYTES, ArraysLayout, Part
from penstock.readers.arrays.npz import STREAM_BYTES
from penstock.readers.arrays.rows import ArrayFiles, reading_row_bytes
from penstock.readers.arrays.values import Place, given_row_bytes, to_arrow
from penstock.readers.blocks import Blocks
from penstock.readers.leasing import RollingLease
from penstock.readers.survey import BlockDecoder
from penstock.runtime.budget import Share

_SAMPLED_ROWS = 256
_SAMPLED_BYTES = MIB


@dataclass(frozen=True, slots=True)
class PartNeeds:
    """Bytes of a part's rows."""

    given_row_bytes: int
    """As they are given out, at most."""
    reading_row_bytes: int
    """While they are read and converted."""
    stream_bytes: int
    """What open streams hold, whatever the number of rows."""

    @classmethod
    def of(cls, part: Part) -> Self:
        """From the headers."""
        arrays = part.arrays.values()
        return cls(
            max(1, sum(given_row_bytes(array.dtype, array.shape) for array in arrays)),
            max(1, sum(reading_row_bytes(array) for array in arrays)),
            sum(STREAM_BYTES for array in arrays if array.member is not None),
        )

    @property
    def row_bytes(self) -> int:
        """Of a row that is being read beside one that is still in use."""
        return self.given_row_bytes + self.reading_row_bytes

    def share_bytes(self, batch_bytes: int) -> int:
        """The share with which batches of about so many bytes are read."""
        return self.stream_bytes + self.row_bytes * max(1, batch_bytes // self.given_row_bytes)


class NumpyDecoder(BlockDecoder):
    """Open files, and the bytes of the batch in work and of the one before."""

    def __init__(
        self, layout: ArraysLayout, blocks: Blocks, needs: Sequence[PartNeeds], share: Share
    ) -> None:
        self._layout = layout
        self._blocks = blocks
        self._needs = needs
        self._batch_rows = [_batch_rows(*pair, share) for pair in zip(layout.parts, needs, strict=True)]
        self._lease = RollingLease(share)
        self._files = ArrayFiles()

    def close(self) -> None:
        """Close files and give all bytes back; a second time does nothing."""
        self._lease.close()
        self._files.close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a block."""
        index, start = int(self._blocks.file_index[block]), int(self._blocks.first_row[block])
        part, needs, batch_rows = self._layout.parts[index], self._needs[index], self._batch_rows[index]
        for first in range(start + first_row, start + end_row, batch_rows):
            end = min(first + batch_rows, start + end_row)
            needed_bytes = needs.stream_bytes + (end - first) * needs.reading_row_bytes
            self._lease.move_on(needed_bytes, retained_bytes=(end - first) * needs.given_row_bytes)
            yield read_batch(self._files, part, self._layout.schema, first, end)


def read_batch(
    files: ArrayFiles, part: Part, schema: pa.Schema, first_row: int, end_row: int
) -> pa.RecordBatch:
    """Rows of a part."""
    columns = []
    for name in schema.names:
        values = files.rows(part.arrays[name], first_row, end_row)
        columns.append(to_arrow(values, Place(part.arrays[name].path, name, first_row)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def sample_batches(part: Part, schema: pa.Schema) -> list[pa.RecordBatch]:
    """A few rows from the start, the middle and the end; of a stream only those at its start."""
    num_rows = max(1, min(_SAMPLED_ROWS, _SAMPLED_BYTES // PartNeeds.of(part).row_bytes, part.num_rows))
    starts = {0} if part.is_stream else {0, (part.num_rows - num_rows) // 2, part.num_rows - num_rows}
    with closing(ArrayFiles()) as files:
        return [read_batch(files, part, schema, first, first + num_rows) for first in sorted(starts)]


def _batch_rows(part: Part, needs: PartNeeds, share: Share) -> int:
    """How many rows are read at once."""
    fitting_rows = (share.limit_bytes - needs.stream_bytes) // needs.row_bytes
    if fitting_rows < 1:
        raise BudgetExceeded(
            f"{part.file.path}: reading a row takes {format_size(needs.share_bytes(0))}, but {share.name} may hold "
            f"{format_size(share.limit_bytes)}; raise {share.setting}, or read fewer columns"
        )
    return min(fitting_rows, max(1, BLOCK_BYTES // needs.given_row_bytes))
