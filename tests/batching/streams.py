"""A source of record batches in memory, for the tests of stages."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.readers.origin import ROW_FIELD, with_row_ids
from penstock.runtime.state import State

SCHEMA = pa.schema([("number", pa.int64()), ("word", pa.string())])


class ListStream:
    """Batches from a list; epochs count on from where the last one ended, so that they can be told apart."""

    def __init__(self, lists: Sequence[Sequence[int]]) -> None:
        self._lists = [list(numbers) for numbers in lists]
        self._epoch = self._num_done = 0
        self.num_given = 0

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA.append(ROW_FIELD)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while self._num_done < len(self._lists):
            first_row = sum(map(len, self._lists[: self._num_done]))
            numbers = np.asarray(self._lists[self._num_done], np.int64) + self._epoch * 1000
            words = pa.array([f"word {number}" for number in numbers], pa.string())
            batch = pa.RecordBatch.from_arrays([pa.array(numbers), words], schema=SCHEMA)
            self._num_done += 1
            self.num_given += 1
            yield with_row_ids(batch, 0, first_row)

    def state_dict(self) -> State:
        return {"epoch": self._epoch, "num_done": self._num_done}

    def load_state_dict(self, state: State) -> None:
        self._epoch, self._num_done = state["epoch"], state["num_done"]

    def set_epoch(self, epoch: int) -> None:
        self._epoch, self._num_done = epoch, 0


def stream_of(*lists: Sequence[int]) -> ListStream:
    """A stream of one batch per list."""
    return ListStream(lists)


def stream_of_sizes(sizes: Sequence[int]) -> ListStream:
    """Consecutive numbers in batches of these sizes."""
    ends = np.cumsum([0, *sizes])
    return ListStream([range(start, end) for start, end in pairwise(ends)])
