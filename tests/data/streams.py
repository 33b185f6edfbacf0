"""Sources of record batches in memory, for the tests of stages."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from penstock.data.cut import CostCut, CostRules
from penstock.data.row_cost import CostOf
from penstock.data.sections import Oversize
from penstock.readers.stream import ROW_FIELD, RecordStream, StreamPosition, with_row_ids
from penstock.runtime.budget import Share


class ColumnStream(RecordStream):
    """One column in chunks of given sizes; the same in every epoch."""

    def __init__(
        self,
        values: pa.Array,
        chunk_rows: Sequence[int] | None = None,
        name: str = "cost",
        file_number: int = 3,
    ) -> None:
        self._rows = pa.RecordBatch.from_arrays([values], names=[name])
        self._ends = list(accumulate([len(values)] if chunk_rows is None else chunk_rows))
        self._file_number, self.file_paths = file_number, "abcd"
        self.schema = self._rows.schema.append(ROW_FIELD)
        self.order = {"files": [], "blocks": 0, "seed": None, "shard": [0, 1]}
        self.position = StreamPosition(0)
        self.num_given = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for end in self._ends:
            first = self.position.row
            if first < end:
                self.position = self.position.at(end)
                self.num_given += 1
                yield with_row_ids(self._chunk(first, end), self._file_number, first)

    def _chunk(self, first: int, end: int) -> pa.RecordBatch:
        return self._rows.slice(first, end - first)


class ListStream(ColumnStream):
    """Numbers and words in one batch per list; each epoch adds 1000, so that epochs can be told apart."""

    def __init__(self, lists: Sequence[Sequence[int]]) -> None:
        self._numbers = list(chain.from_iterable(lists))
        super().__init__(pa.array([]), [len(numbers) for numbers in lists], file_number=0)
        self.schema = self._chunk(0, 0).schema.append(ROW_FIELD)

    def _chunk(self, first: int, end: int) -> pa.RecordBatch:
        numbers = [number + 1000 * self.position.epoch for number in self._numbers[first:end]]
        words = [f"word {number}" for number in numbers]
        return pa.record_batch(
            {"number": pa.array(numbers, pa.int64()), "word": pa.array(words, pa.string())}
        )


def stream_of_sizes(sizes: Sequence[int]) -> ListStream:
    """Consecutive numbers in batches of these sizes."""
    return ListStream([range(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)])


def cut_by_cost(
    source: RecordStream,
    cost: CostOf,
    limit: float,
    *,
    oversize: str = "alone",
    share: Share | None = None,
    **rules: Any,
) -> CostCut:
    return CostCut(source, cost, CostRules(limit, oversize=Oversize(oversize), **rules), share)
