"""Records -> one record batch: what TFRecord files add to the reading of indexed files."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.readers.text.parsing import ParseCost
from penstock.readers.tfrecord.columns import Located, take_columns
from penstock.readers.tfrecord.features import ANY_LENGTH, Feature
from penstock.readers.tfrecord.framing import record_ends
from penstock.readers.tfrecord.locate import MISSING, fill_slots, locate
from penstock.readers.tfrecord.problems import UnusableRecord, of_failure
from penstock.readers.tfrecord.refusal import Refuse
from penstock.readers.tfrecord.wire import BYTES_KIND, FLOAT_KIND, INT64_KIND

_LIST_BYTES_PER_TEXT_BYTE = {BYTES_KIND: 6, FLOAT_KIND: 3, INT64_KIND: 16}
"""What the values of lists take at most, and once more while they are cast: a packed int64 may stand in one byte,
and an empty text in two."""
_TEXT_BYTES_PER_TEXT_BYTE = 2
"""Of columns with one text in each row: once more while rows without one are filled in."""
_CELL_BYTES = 8
_SCALAR_BYTES = 2 * 9
_COUNT_BYTES = 24
"""The lengths, sizes and offsets of a row of a column of lists or texts."""


@dataclass(frozen=True)
class ExampleParser:
    """Turns records of tf.train.Example into columns."""

    features: dict[str, Feature]
    refuse: Refuse
    """What happens to a record that cannot be used."""

    @cached_property
    def columns(self) -> pa.Schema:
        """Of every batch."""
        return pa.schema([(name, feature.arrow_type) for name, feature in self.features.items()])

    @cached_property
    def cost(self) -> ParseCost:
        """The records, their cells, and the columns."""
        features = self.features.values()
        lists = {feature.kind for feature in features if feature.length is not None}
        has_texts = any(feature.kind == BYTES_KIND and feature.length is None for feature in features)
        per_text_byte = 1 + sum(_LIST_BYTES_PER_TEXT_BYTE[kind] for kind in lists)
        per_text_byte += _TEXT_BYTES_PER_TEXT_BYTE if has_texts else 0
        return ParseCost(per_text_byte, sum(_row_bytes(feature) for feature in features))

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        """So many records of a file; `first_row` is the row of the first of them in the file."""
        located = self._locate(text, file_index, first_row, num_records)
        while True:
            try:
                columns = take_columns(located, list(self.features.values()))
                return pa.RecordBatch.from_arrays(columns, schema=self.columns)
            except UnusableRecord as bad:
                self._refuse(bad, file_index, first_row + bad.row)
                located.cells[bad.row, bad.column, 0] = MISSING

    def _locate(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> Located:
        """The cells of the records; those of a record that is refused are missing."""
        data = np.frombuffer(text, np.uint8)
        cells = np.empty((num_records, len(self.features), 2), np.int32)
        failure = np.zeros(4, np.int64)
        row = start = 0
        while locate(data, start, num_records - row, *self._keys, self._kinds, cells[row:], failure) < 0:
            reason, failed_row, column, number = failure.tolist()
            bad = of_failure([reason, row + failed_row, column, number], self._kinds.tolist())
            self._refuse(bad, file_index, first_row + bad.row)
            cells[bad.row, :, 0] = MISSING
            row, start = bad.row + 1, int(record_ends(text)[bad.row])
        return Located(data, cells)

    def _refuse(self, bad: UnusableRecord, file_index: int, row: int) -> None:
        self.refuse(bad, file_index, row, None if bad.column < 0 else list(self.features)[bad.column])

    @cached_property
    def _kinds(self) -> NDArray[np.int64]:
        return np.array([feature.kind for feature in self.features.values()], np.int64)

    @cached_property
    def _keys(self) -> tuple[Any, ...]:
        """The names of the columns as `locate` takes them: their bytes, where each begins, and a hash table."""
        names = [name.encode() for name in self.features]
        key_data = np.frombuffer(b"".join(names), np.uint8)
        key_offsets = np.cumsum([0, *map(len, names)])
        slots = np.full(1 << (2 * len(names)).bit_length(), -1)
        fill_slots(key_data, key_offsets, slots)
        return key_data, key_offsets, slots


def _row_bytes(feature: Feature) -> int:
    """What a row of a column takes, whatever its record holds."""
    if feature.length is None and feature.kind != BYTES_KIND:
        return _CELL_BYTES + _SCALAR_BYTES
    length = 0 if feature.length in (None, ANY_LENGTH) else int(feature.length or 0)
    return _CELL_BYTES + _COUNT_BYTES + 2 * 8 * length
