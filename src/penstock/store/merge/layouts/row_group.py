"""Samples that wait until there are enough of them to be written to a Parquet or Arrow file at once."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from penstock.store.merge.layouts.arrow_rows import record_batch
from penstock.store.merge.source.reading import Rows
from penstock.store.schema import StoreSchema


class RowGroup:
    """Room for so many samples, which is used again and again."""

    def __init__(self, schema: StoreSchema, num_rows: int) -> None:
        self._schema, self._num_rows = schema, num_rows
        self._rows = {spec.name: np.empty((num_rows, spec.row_bytes), np.uint8) for spec in schema.arrays}
        self._filled = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self._filled

    @property
    def is_full(self) -> bool:
        """Whether it must be written."""
        return self._filled == self._num_rows

    def add(self, columns: Mapping[str, Rows], first: int, count: int) -> int:
        """Copy samples from `first` on, at most `count` of them; gives how many there was room for."""
        taken = min(count, self._num_rows - self._filled)
        for name, rows in self._rows.items():
            rows[self._filled : self._filled + taken] = columns[name][first : first + taken]
        self._filled += taken
        return taken

    def take(self) -> pa.RecordBatch:
        """All samples, as they are until others are added."""
        filled, self._filled = self._filled, 0
        return record_batch(self._schema, {name: rows[:filled] for name, rows in self._rows.items()})
