"""A source of record batches in memory, for the tests of stages."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.readers.stream import ROW_FIELD, RecordStream, StreamPosition, with_row_ids
from penstock.runtime.world import State

SCHEMA = pa.schema([("number", pa.int64()), ("word", pa.string())])


class ListStream(RecordStream):
    """Batches from a list; epochs count on from where the last one ended, so that they can be told apart."""

    def __init__(self, lists: Sequence[Sequence[int]]) -> None:
        self._lists = [list(numbers) for numbers in lists]
        self._position = StreamPosition(0)
        self.num_given = 0

    schema = SCHEMA.append(ROW_FIELD)
    order = property(lambda self: {"name": "list"})
    position = property(lambda self: self._position)

    def seek(self, position: StreamPosition) -> None:
        self._position = position

    def check_order(self, saved: State) -> None:
        assert saved["name"] == "list"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        end = 0
        for numbers in self._lists:
            start, end = end, end + len(numbers)
            first = max(start, self._position.row)
            if first < end:
                self._position = self._position.at(end)
                self.num_given += 1
                yield self._batch(numbers[first - start :], first)

    def _batch(self, numbers: list[int], first_row: int) -> pa.RecordBatch:
        values = np.asarray(numbers, np.int64) + self._position.epoch * 1000
        words = pa.array([f"word {number}" for number in values], pa.string())
        return with_row_ids(
            pa.RecordBatch.from_arrays([pa.array(values), words], schema=SCHEMA), 0, first_row
        )


def stream_of(*lists: Sequence[int]) -> ListStream:
    """A stream of one batch per list."""
    return ListStream(lists)


def stream_of_sizes(sizes: Sequence[int]) -> ListStream:
    """Consecutive numbers in batches of these sizes."""
    ends = np.cumsum([0, *sizes])
    return ListStream([range(start, end) for start, end in pairwise(ends)])
