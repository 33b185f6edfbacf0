"""The rows of one shard in one epoch: which pieces of which blocks, in which order.

The blocks stand in the epoch's order; rows that are done already are left out; what is left is cut into equal
shards by row. So every row is in exactly one shard, however many files, blocks and shards there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.readers.blocks import Blocks, Int64Array, Shard
from penstock.readers.done import BoolArray, Done, DoneRows
from penstock.readers.order import block_order


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one block: an interval, of which `wanted` may leave some out."""

    block: int
    first_row: int
    end_row: int
    wanted: BoolArray | None = None


class RowSequence:
    """A finite order of rows that one can enter at any row."""

    def __init__(self, blocks: Blocks, seed: int | None, epoch: int, shard: Shard, done: Done | None) -> None:
        self._order = block_order(len(blocks), seed, epoch)
        self._partly = {} if done is None else done.partly
        self._block_rows = blocks.num_rows
        left = blocks.num_rows if done is None else done.rows_left(blocks)
        self._ends = np.cumsum(left[self._order])
        total_rows = int(self._ends[-1]) if len(blocks) else 0
        self._first, self._end = shard.bounds(total_rows)
        self.num_done_rows = blocks.total_rows - total_rows
        """Rows of the epoch that were done before, in all shards."""

    @property
    def num_rows(self) -> int:
        """Rows of this shard."""
        return self._end - self._first

    def pieces(self, row: int = 0) -> Iterator[Piece]:
        """What to read, from a row of this sequence on."""
        at = self._first + row
        index = int(np.searchsorted(self._ends, at, side="right"))
        while at < self._end:
            start = int(self._ends[index - 1]) if index else 0
            end = min(int(self._ends[index]), self._end)
            if at < end:
                yield self._piece(int(self._order[index]), at - start, end - start)
            at, index = end, index + 1

    def _piece(self, block: int, first: int, end: int) -> Piece:
        """The rows numbered `first` to `end` among those of a block that are left."""
        done = self._partly.get(block)
        if done is None:
            return Piece(block, first, end)
        left = np.flatnonzero(~done)[first:end]
        first_row, end_row = int(left[0]), int(left[-1]) + 1
        wanted = np.zeros(end_row - first_row, np.bool_)
        wanted[left - first_row] = True
        return Piece(block, first_row, end_row, wanted)

    def add_first_rows(self, num_rows: int, to: DoneRows) -> None:
        """Count the first rows of this sequence as done."""
        counted = 0
        for piece in self.pieces():
            if counted >= num_rows:
                return
            missing = num_rows - counted
            if piece.wanted is None:
                end_row = min(piece.end_row, piece.first_row + missing)
                to.add_range(piece.block, piece.first_row, end_row)
                counted += end_row - piece.first_row
            else:
                rows = piece.first_row + np.flatnonzero(piece.wanted)[:missing]
                to.add(np.full(len(rows), piece.block), rows)
                counted += len(rows)

    def add_rows(self, rows: Int64Array, to: DoneRows) -> None:
        """Count rows of this sequence, given by their numbers in it, as done."""
        at = self._first + rows
        index = np.searchsorted(self._ends, at, side="right")
        starts = np.concatenate([[0], self._ends])[index]
        blocks, numbers = self._order[index], at - starts
        for block in self._partly.keys() & set(np.unique(blocks).tolist()):
            inside = blocks == block
            numbers[inside] = np.flatnonzero(~self._partly[block])[numbers[inside]]
        to.add(blocks, numbers)
