"""Streams of rows with costs, and a cutter so plain that it is surely right, for the tests of cutting by cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.data.cut import CostCut, CostRules
from penstock.data.row_cost import ColumnCost, CostOf
from penstock.data.sections import Oversize
from penstock.readers.stream import ROW_FIELD, RecordStream, StreamPosition, with_row_ids
from penstock.runtime.budget import Share
from penstock.runtime.world import State


class ColumnStream(RecordStream):
    """One column in chunks of given sizes; the same in every epoch."""

    def __init__(self, values: pa.Array, chunk_rows: Sequence[int] | None = None, name: str = "cost") -> None:
        self._rows = pa.RecordBatch.from_arrays([values], names=[name])
        self._chunk_rows = [len(values)] if chunk_rows is None else chunk_rows
        self._position = StreamPosition(0)

    schema = property(lambda self: self._rows.schema.append(ROW_FIELD))
    order = property(lambda self: {"name": "column"})
    position = property(lambda self: self._position)

    def seek(self, position: StreamPosition) -> None:
        self._position = position

    def check_order(self, saved: State) -> None:
        assert saved["name"] == "column"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        end = 0
        for num_rows in self._chunk_rows:
            end += num_rows
            first = self._position.row
            if first < end:
                self._position = self._position.at(end)
                yield with_row_ids(self._rows.slice(first, end - first), 3, first)


def costs_of(values: Sequence[Any], *chunk_rows: int, kind: pa.DataType | None = None) -> ColumnStream:
    """A stream with these costs, in one chunk or in chunks of these sizes."""
    return ColumnStream(pa.array(values, kind or pa.int64()), chunk_rows or None)


def cut_by_cost(
    source: RecordStream,
    cost: CostOf,
    limit: float,
    *,
    oversize: str = "alone",
    file_paths: Sequence[str] = (),
    share: Share | None = None,
    **rules: Any,
) -> CostCut:
    return CostCut(source, cost, CostRules(limit, oversize=Oversize(oversize), **rules), file_paths, share)


def cut(values: Sequence[Any], *chunk_rows: int, limit: float = 10, **rules: Any) -> list[list[Any]]:
    """The costs of each batch."""
    return [batch.column("cost").to_pylist() for batch in cut_of(values, *chunk_rows, limit=limit, **rules)]


def cut_of(
    values: Sequence[Any], *chunk_rows: int, limit: float = 10, kind: pa.DataType | None = None, **rules: Any
) -> CostCut:
    """The stage over a stream with these costs."""
    return cut_by_cost(costs_of(values, *chunk_rows, kind=kind), ColumnCost("cost"), limit, **rules)


@dataclass
class PlainCut:
    """Row after row: batches as row numbers, the position after each, and how many rows cost too much."""

    batches: list[list[int]] = field(default_factory=list)
    num_oversize: int = 0


def plain_cut(
    costs: Sequence[float], limit: float, max_rows: int | None, oversize: str, drop_remainder: bool
) -> PlainCut:
    """What `cut_by_cost` must give."""
    result = PlainCut()
    batch: list[int] = []
    total: float = 0

    def close() -> None:
        nonlocal total
        if batch:
            result.batches.append(batch.copy())
        batch.clear()
        total = 0

    for row, cost in enumerate(costs):
        if cost > limit:
            result.num_oversize += 1
            if oversize == "alone":
                close()
                result.batches.append([row])
            continue
        if total + cost > limit or len(batch) == max_rows:
            close()
        batch.append(row)
        total += cost
    if drop_remainder and total < limit and len(batch) != max_rows:
        batch.clear()
    close()
    return result
