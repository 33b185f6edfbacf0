"""Which rows of an epoch are done, when a run goes on with another number of shards.

Finished blocks, and one bitmap for each block of which only some rows are done.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.readers.blocks import Blocks, Int64Array
from penstock.runtime.world import State

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Done:
    """Rows that an epoch has given out already; what is left of it goes on from here."""

    finished: BoolArray
    """For each block whether all of its rows are done."""
    partly: Mapping[int, BoolArray] = field(default_factory=dict)
    """For each block that is done in part: which of its rows are."""
    num_rows: int = 0
    """How many rows are done."""

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
        """What `state` gave."""
        finished = np.zeros(state["num_blocks"], np.bool_)
        for start, end in state["finished"]:
            finished[start:end] = True
        partly = {
            int(block): np.unpackbits(np.frombuffer(base64.b64decode(bits), np.uint8), count=num_rows).astype(
                np.bool_
            )
            for block, (num_rows, bits) in state["partly"].items()
        }
        return cls(finished, partly, state["num_rows"])


class DoneRows:
    """Collects rows that are done, block by block."""

    def __init__(self, blocks: Blocks, before: Done | None) -> None:
        before = before or Done.nothing(blocks)
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

    def result(self) -> Done:
        """All of it; a bitmap that is full becomes a finished block."""
        for block in [block for block, done in self._partly.items() if done.all()]:
            self._finished[block] = True
            del self._partly[block]
        num_rows = int(self._blocks.num_rows[self._finished].sum())
        num_rows += sum(int(np.count_nonzero(done)) for done in self._partly.values())
        return Done(self._finished, self._partly, num_rows)

    def _bits(self, block: int) -> BoolArray:
        if self._finished[block]:
            return np.ones(int(self._blocks.num_rows[block]), np.bool_)
        return self._partly.setdefault(block, np.zeros(int(self._blocks.num_rows[block]), np.bool_))
