"""Rows of similar length together, so that padding them to one width wastes little.

Inside a shuffle window the rows are sorted by length and cut into runs of a batch each; the runs come in random order.
"""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.data.row_cost import SequenceLength
from penstock.readers.blocks import Int64Array, Shard
from penstock.readers.reading import read_blocks
from penstock.readers.stream import Place
from penstock.readers.survey import Survey
from penstock.runtime.budget import Share
from penstock.runtime.world import State

ReadLengths = Callable[[State, Place, int], Int64Array]
"""From the order of a saved state, a place in it before the shuffle, and a number of rows: their lengths."""


@dataclass(frozen=True, slots=True)
class Bucketing:
    """By which length rows are brought together, and in runs of how many rows: those of a batch."""

    length: SequenceLength
    run_rows: int

    def __post_init__(self) -> None:
        if self.run_rows < 1:
            raise ValueError(f"a run needs at least one row, not {self.run_rows}")

    @property
    def state(self) -> State:
        """What the order of rows depends on."""
        length = self.length
        return {"bucket_by": [length.column, length.separator, length.longest], "run_rows": self.run_rows}

    def window_rows(self, num_rows: int) -> int:
        """A window of whole runs that is no larger than this one, so that batches do not reach into the next."""
        return num_rows - num_rows % self.run_rows if num_rows > self.run_rows else num_rows

    def lengths_of(self, batches: Iterable[pa.RecordBatch]) -> Int64Array:
        """The length of each row of several batches."""
        return np.concatenate([np.empty(0, np.int64), *(self.length.of(batch) for batch in batches)])


def by_length(
    rows: Int64Array, lengths: Int64Array, run_rows: int, generator: np.random.Generator
) -> Int64Array:
    """Rows in random order, brought into runs of similar length; `lengths` are those of all rows by their number.

    Rows of equal length stay in random order, and so do the runs. Where the rows are no whole number of runs, the short
    one is cut out at a random place and comes last.
    """
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    num_runs, num_left = divmod(len(rows), run_rows)
    short_start = int(generator.integers(num_runs + 1)) * run_rows
    short = rows[short_start : short_start + num_left]
    runs = np.delete(rows, np.s_[short_start : short_start + num_left]).reshape(num_runs, run_rows)
    return np.concatenate([runs[generator.permutation(num_runs)].ravel(), short])


def read_lengths(survey: Survey, share: Share, bucketing: Bucketing) -> ReadLengths:
    """Reads the lengths of a window again; a survey of nothing but the column is enough."""

    def read(order: State, place: Place, num_rows: int) -> Int64Array:
        stream = read_blocks(survey, share, order["seed"], Shard(*order["shard"]))
        stream.go_to(place)
        with closing(iter(stream)) as batches:  # type: ignore[type-var]
            return bucketing.lengths_of(_first_rows(batches, num_rows))

    return read


def _first_rows(batches: Iterable[pa.RecordBatch], num_rows: int) -> Iterable[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, num_rows)
        num_rows -= batch.num_rows
        if num_rows <= 0:
            return
