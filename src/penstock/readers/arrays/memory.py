"""Arrays and tables in memory as a data set: the same blocks, shards and places as files have."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, format_size
from penstock.readers.arrays.held import MEMORY, Held, HeldColumn, held_column
from penstock.readers.arrays.layout import BLOCK_BYTES, check_lengths, row_ranges
from penstock.readers.blocks import Blocks
from penstock.readers.casting import with_types
from penstock.readers.columns import project
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint, fingerprint
from penstock.readers.leasing import RollingLease
from penstock.readers.origin import ROW_FIELD
from penstock.readers.survey import BlockDecoder, Survey, Wanted
from penstock.runtime.budget import Share

_END_BYTES = 64 * KIB
_LEAST_BATCH_BYTES = 64 * KIB
EVERYTHING = Wanted()


def survey_arrays(arrays: Mapping[str, Held], wanted: Wanted = EVERYTHING) -> Survey:
    """NumPy or Arrow arrays of equal lengths, by the names of their columns; they are not copied.

    >>> import numpy as np
    >>> survey_arrays({"x": np.zeros((5, 2), np.float32), "y": np.arange(5)}).num_rows
    5
    """
    if not arrays:
        raise DataError(f"{MEMORY}: there are none; give at least one array")
    as_text = pa.schema([(name, pa.string()) for name in arrays])
    columns = {
        name: held_column(name, arrays[name]) for name in project(as_text, wanted.columns, MEMORY).names
    }
    check_lengths({f"column '{name}'": column for name, column in columns.items()})
    return ArraysSurvey(columns)


def survey_table(table: pa.Table, wanted: Wanted = EVERYTHING) -> Survey:
    """The columns of an Arrow table; they are not copied."""
    twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if twice:
        raise DataError.at("stands more than once in this table", file=MEMORY, column=twice[0])
    return survey_arrays(dict(zip(table.column_names, table.columns, strict=True)), wanted)


@dataclass(frozen=True)
class ArraysSurvey(Survey):
    """Arrays that are held by whoever gave them."""

    held: Mapping[str, HeldColumn]

    @cached_property
    def files(self) -> tuple[DataFile, ...]:  # type: ignore[override]
        """One, which is no file: what messages call the data."""
        return (DataFile(MEMORY, self.held_row_bytes * self._num_held_rows),)

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        """Names, types and lengths, and a checksum of the first and the last rows."""
        end_rows = min(self._num_held_rows, 1 + _END_BYTES // self.held_row_bytes)
        checksum = zlib.crc32(repr([(name, str(column.type)) for name, column in self.held.items()]).encode())
        for first_row in (0, self._num_held_rows - end_rows):
            for batch in self.rows(first_row, first_row + end_rows):
                checksum = zlib.crc32(batch.serialize(), checksum)
        return (fingerprint(self.files[0], self._num_held_rows, checksum),)

    @cached_property
    def columns(self) -> pa.Schema:
        """The wanted arrays."""
        return pa.schema([(name, column.type) for name, column in self.held.items()])

    @cached_property
    def blocks(self) -> Blocks:
        """Row ranges of about 8 MiB."""
        return Blocks.of(
            (0, first, count) for first, count in row_ranges(self._num_held_rows, self.held_row_bytes)
        )

    @property
    def row_bytes(self) -> int:
        """With its origin."""
        return self.held_row_bytes + ROW_FIELD.type.bit_width // 8

    @cached_property
    def held_row_bytes(self) -> int:
        """From the sizes of the arrays."""
        return max(1, sum(column.row_bytes for column in self.held.values()))

    @property
    def leased_row_bytes(self) -> int:
        """What giving out a row takes beside what is held already."""
        return sum(column.leased_row_bytes for column in self.held.values())

    @property
    def least_bytes(self) -> int:
        """Two batches of 64 KiB, if anything must be copied at all."""
        return self._share_bytes(_LEAST_BATCH_BYTES)

    @property
    def ample_bytes(self) -> int:
        """Two blocks, if anything must be copied at all."""
        return self._share_bytes(BLOCK_BYTES)

    @property
    def block_bytes(self) -> int:
        """A block; where it is a view, reading ahead holds nothing, but does not know that."""
        return max(1, int(self.blocks.num_rows.max(initial=0)) * self.held_row_bytes)

    def decoder(self, share: Share) -> BlockDecoder:
        """Gives out row ranges."""
        return HeldDecoder(self, share)

    def rows(self, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Some rows, cut where chunks end."""
        table = pa.table({name: column.rows(first_row, end_row) for name, column in self.held.items()})
        for batch in table.to_batches():
            yield with_types(batch, self.columns)

    def let_go(self) -> None:
        """Give back what giving out rows has touched."""
        for column in self.held.values():
            column.let_go()

    @property
    def _num_held_rows(self) -> int:
        return next(iter(self.held.values())).num_rows

    def _share_bytes(self, batch_bytes: int) -> int:
        return max(1, 2 * self.leased_row_bytes * max(1, batch_bytes // self.held_row_bytes))


class HeldDecoder(BlockDecoder):
    """The bytes of the copies in work and of those before; nothing where rows are views."""

    def __init__(self, survey: ArraysSurvey, share: Share) -> None:
        self._survey = survey
        self._lease = RollingLease(share)
        self._batch_rows = _batch_rows(survey, share)

    def close(self) -> None:
        """Give all bytes back; a second time does nothing."""
        self._lease.close()
        self._survey.let_go()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a block, as many at a time as the share holds twice."""
        start = int(self._survey.blocks.first_row[block])
        for first in range(start + first_row, start + end_row, self._batch_rows):
            end = min(first + self._batch_rows, start + end_row)
            self._survey.let_go()
            leased_bytes = (end - first) * self._survey.leased_row_bytes
            self._lease.move_on(leased_bytes, leased_bytes)
            yield from self._survey.rows(first, end)


def _batch_rows(survey: ArraysSurvey, share: Share) -> int:
    """How many rows are given out at once."""
    block_rows = max(1, BLOCK_BYTES // survey.held_row_bytes)
    if not survey.leased_row_bytes:
        return block_rows
    fitting_rows = share.limit_bytes // (2 * survey.leased_row_bytes)
    if fitting_rows < 1:
        raise BudgetExceeded(
            f"{MEMORY}: giving out a row takes {format_size(2 * survey.leased_row_bytes)}, but {share.name} may "
            f"hold {format_size(share.limit_bytes)}; raise {share.setting}, or give arrays that need no conversion"
        )
    return min(fitting_rows, block_rows)
