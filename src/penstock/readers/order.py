"""The rows of one shard in one epoch: which pieces of which blocks, in which order.

A block is the part of a file that is read and permuted as a whole. The blocks stand in the epoch's order, which follows
from the seed; rows that are consumed already are left out; what is left is cut into equal shards by row. So every row
is in exactly one shard, however many files, blocks and shards there are. When a run goes on with another number of
shards, what is consumed are finished blocks, and a bitmap for each block of which only some rows are.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.runtime.world import State

BoolArray = NDArray[np.bool_]
Int64Array = NDArray[np.int64]


@dataclass(eq=False)
class Blocks:
    """All blocks of a data set in the order of the files, as columns; none is empty."""

    file_index: Int64Array
    first_row: Int64Array
    num_rows: Int64Array
    total_rows: int = field(init=False)
    checksum: int = field(init=False)

    @classmethod
    def of(cls, blocks: Iterable[tuple[int, int, int]]) -> Self:
        """From (file index, first row in the file, number of rows) of each block; empty ones are left out."""
        table = np.array([block for block in blocks if block[2]], np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    def __post_init__(self) -> None:
        self.total_rows = int(self.num_rows.sum())
        self.checksum = zlib.crc32(np.stack([self.file_index, self.first_row, self.num_rows]).tobytes())

    def __len__(self) -> int:
        return len(self.num_rows)


@dataclass(frozen=True, slots=True)
class Shard:
    """Which of how many equal parts of the rows is read here."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise ValueError(f"there is no shard {self.index} of {self.count}; they are counted from 0")

    def bounds(self, num_rows: int) -> tuple[int, int]:
        """The part of `num_rows` rows that is this shard's: equal parts, the first ones a row larger.

        >>> [Shard(index, 3).bounds(8) for index in range(3)]
        [(0, 3), (3, 6), (6, 8)]
        """
        size, larger = divmod(num_rows, self.count)
        start = self.index * size + min(self.index, larger)
        return start, start + size + (self.index < larger)


def derive_generator(purpose: str, seed: int, *position: int) -> np.random.Generator:
    """Equal arguments, such as ("blocks", seed, epoch), give equal numbers; purposes are independent."""
    return np.random.default_rng([zlib.crc32(purpose.encode()), seed % 2**64, *position])


@dataclass(frozen=True)
class ConsumedRows:
    """Rows that an epoch has given out already, whoever read them."""

    finished: BoolArray
    partly: Mapping[int, BoolArray] = field(default_factory=dict)
    """For each block that is consumed in part: which of its rows are."""
    num_rows: int = 0

    def rows_left(self, blocks: Blocks) -> Int64Array:
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
    def __init__(self, blocks: Blocks, before: ConsumedRows | None) -> None:
        before = before or ConsumedRows(np.zeros(len(blocks), np.bool_))
        self._blocks = blocks
        self._finished = before.finished.copy()
        self._partly = {block: done.copy() for block, done in before.partly.items()}

    def add(self, blocks: Int64Array, rows: Int64Array) -> None:
        """For each row its block, and its number there."""
        by_block = np.argsort(blocks, kind="stable")
        edges = np.flatnonzero(np.diff(blocks[by_block], prepend=-1, append=-1)).tolist()
        for start, end in pairwise(edges):
            chosen = by_block[start:end]
            self._bits(int(blocks[chosen[0]]))[rows[chosen]] = True

    def add_range(self, block: int, first_row: int, end_row: int) -> None:
        if first_row == 0 and end_row == self._blocks.num_rows[block]:
            self._finished[block] = True
            self._partly.pop(block, None)
        else:
            self._bits(block)[first_row:end_row] = True

    def result(self) -> ConsumedRows:
        # A bitmap that is full becomes a finished block.
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
    """Rows of one block: an interval, of which `mask` may leave some out."""

    block: int
    first_row: int
    end_row: int
    mask: BoolArray | None = None


class EpochOrder:
    """The order of a shard's rows, which can be entered at any row."""

    def __init__(
        self, blocks: Blocks, seed: int | None, epoch: int, shard: Shard, done: ConsumedRows | None
    ) -> None:
        generator = None if seed is None else derive_generator("blocks", seed, epoch)
        self._order = np.arange(len(blocks)) if generator is None else generator.permutation(len(blocks))
        self._partly = {} if done is None else done.partly
        left = blocks.num_rows if done is None else done.rows_left(blocks)
        self._ends = np.cumsum(left[self._order])
        self._first, self._end = shard.bounds(int(self._ends[-1]) if len(blocks) else 0)
        self.num_rows = self._end - self._first

    def pieces(self, row: int = 0, end_row: int | None = None) -> Iterator[Piece]:
        """What to read, from a row of the shard on, up to another."""
        at, stop = self._first + row, self._end if end_row is None else self._first + end_row
        index = int(np.searchsorted(self._ends, at, side="right"))
        while at < stop:
            start = int(self._ends[index - 1]) if index else 0
            end = min(int(self._ends[index]), stop)
            if at < end:
                block = int(self._order[index])
                if (done := self._partly.get(block)) is None:
                    yield Piece(block, at - start, end - start)
                else:
                    left = np.flatnonzero(~done)[at - start : end - start]
                    mask = np.zeros(int(left[-1] - left[0]) + 1, np.bool_)
                    mask[left - left[0]] = True
                    yield Piece(block, int(left[0]), int(left[-1]) + 1, mask)
            at, index = end, index + 1

    def add_first_rows(self, num_rows: int, to: ConsumedRowsBuilder) -> None:
        for piece in self.pieces(0, num_rows):
            if piece.mask is None:
                to.add_range(piece.block, piece.first_row, piece.end_row)
            else:
                rows = piece.first_row + np.flatnonzero(piece.mask)
                to.add(np.full(len(rows), piece.block), rows)

    def add_rows(self, rows: Int64Array, to: ConsumedRowsBuilder) -> None:
        """`rows` are numbers of rows in this order."""
        at = self._first + rows
        index = np.searchsorted(self._ends, at, side="right")
        starts = np.concatenate([[0], self._ends])[index]
        blocks, numbers = self._order[index], at - starts
        for block in self._partly.keys() & set(np.unique(blocks).tolist()):
            inside = blocks == block
            numbers[inside] = np.flatnonzero(~self._partly[block])[numbers[inside]]
        to.add(blocks, numbers)
