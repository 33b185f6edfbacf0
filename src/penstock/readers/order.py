"""The rows of one shard in one epoch: which pieces of which blocks, in which order.

The blocks stand in the epoch's order, which follows from the seed; rows that are done already are left out; what is
left is cut into equal shards by row. So every row is in exactly one shard, however many files, blocks and shards there
are. When a run goes on with another number of shards, what is done are finished blocks, and a bitmap for each block
of which only some rows are.
"""

import base64
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.readers.blocks import Blocks, Int64Array, Shard
from penstock.runtime.world import State

BoolArray = NDArray[np.bool_]


def derive_generator(purpose: str, seed: int, *position: int) -> np.random.Generator:
    """A generator for one purpose at one position, such as ("blocks", seed, epoch).

    Equal arguments give equal numbers, whatever was drawn before; different purposes are independent.
    """
    return np.random.default_rng([zlib.crc32(purpose.encode()), seed % 2**64, *position])


def block_order(num_blocks: int, seed: int | None, epoch: int) -> Int64Array:
    """The order in which an epoch reads its blocks: as they stand, or permuted by the seed."""
    if seed is None:
        return np.arange(num_blocks)
    return derive_generator("blocks", seed, epoch).permutation(num_blocks)


@dataclass(frozen=True)
class ConsumedRows:
    """Rows that an epoch has given out already; what is left of it goes on from here."""

    finished: BoolArray
    """For each block whether all of its rows are done."""
    partly: Mapping[int, BoolArray] = field(default_factory=dict)
    """For each block that is done in part: which of its rows are."""
    num_rows: int = 0

    @classmethod
    def nothing(cls, blocks: Blocks) -> Self:
        """The start of an epoch."""
        return cls(np.zeros(len(blocks), np.bool_))

    def rows_left(self, blocks: Blocks) -> Int64Array:
        """Rows of each block that are not done."""
        left = np.where(self.finished, 0, blocks.num_rows)
        for block, done in self.partly.items():
            left[block] = len(done) - np.count_nonzero(done)
        return left

    @cached_property
    def state(self) -> State:
        """Small, and ready for JSON."""
        edges = np.flatnonzero(np.diff(self.finished.astype(np.int8), prepend=0, append=0)).tolist()
        return {
            "num_blocks": len(self.finished),
            "num_rows": self.num_rows,
            "finished": [[start, end] for start, end in list(pairwise(edges))[::2]],
            "partly": {
                str(block): [len(done), base64.b64encode(np.packbits(done).tobytes()).decode()]
                for block, done in sorted(self.partly.items())
            },
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Self:
        finished = np.zeros(state["num_blocks"], np.bool_)
        for start, end in state["finished"]:
            finished[start:end] = True
        partly = {}
        for block, (num_rows, bits) in state["partly"].items():
            packed = np.frombuffer(base64.b64decode(bits), np.uint8)
            partly[int(block)] = np.unpackbits(packed, count=num_rows).astype(np.bool_)
        return cls(finished, partly, state["num_rows"])


class ConsumedRowsBuilder:
    """Collects rows that are done, block by block."""

    def __init__(self, blocks: Blocks, before: ConsumedRows | None) -> None:
        before = before or ConsumedRows.nothing(blocks)
        self._blocks = blocks
        self._finished = before.finished.copy()
        self._partly = {block: done.copy() for block, done in before.partly.items()}

    def add(self, blocks: Int64Array, rows: Int64Array) -> None:
        """Count rows as done: for each its block, and its number there."""
        by_block = np.argsort(blocks, kind="stable")
        edges = np.flatnonzero(np.diff(blocks[by_block], prepend=-1, append=-1)).tolist()
        for start, end in pairwise(edges):
            chosen = by_block[start:end]
            self._bits(int(blocks[chosen[0]]))[rows[chosen]] = True

    def add_range(self, block: int, first_row: int, end_row: int) -> None:
        """Count consecutive rows of a block as done."""
        if first_row == 0 and end_row == self._blocks.num_rows[block]:
            self._finished[block] = True
            self._partly.pop(block, None)
        else:
            self._bits(block)[first_row:end_row] = True

    def result(self) -> ConsumedRows:
        """All of it; a bitmap that is full becomes a finished block."""
        for block in [block for block, done in self._partly.items() if done.all()]:
            self._finished[block] = True
            del self._partly[block]
        num_rows = int(self._blocks.num_rows[self._finished].sum())
        num_rows += sum(int(np.count_nonzero(done)) for done in self._partly.values())
        return ConsumedRows(self._finished, self._partly, num_rows)

    def _bits(self, block: int) -> BoolArray:
        if self._finished[block]:
            return np.ones(int(self._blocks.num_rows[block]), np.bool_)
        return self._partly.setdefault(block, np.zeros(int(self._blocks.num_rows[block]), np.bool_))


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one block: an interval, of which `wanted` may leave some out."""

    block: int
    first_row: int
    end_row: int
    wanted: BoolArray | None = None


class EpochOrder:
    """A finite order of rows that one can enter at any row."""

    def __init__(
        self, blocks: Blocks, seed: int | None, epoch: int, shard: Shard, done: ConsumedRows | None
    ) -> None:
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

    def add_first_rows(self, num_rows: int, to: ConsumedRowsBuilder) -> None:
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

    def add_rows(self, rows: Int64Array, to: ConsumedRowsBuilder) -> None:
        """Count rows of this sequence, given by their numbers in it, as done."""
        at = self._first + rows
        index = np.searchsorted(self._ends, at, side="right")
        starts = np.concatenate([[0], self._ends])[index]
        blocks, numbers = self._order[index], at - starts
        for block in self._partly.keys() & set(np.unique(blocks).tolist()):
            inside = blocks == block
            numbers[inside] = np.flatnonzero(~self._partly[block])[numbers[inside]]
        to.add(blocks, numbers)
