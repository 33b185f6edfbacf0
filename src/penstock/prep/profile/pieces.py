"""Which rows are looked at, where not all are: pieces from all over the data that cost little to reach."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from penstock.config.sizes import MIB
from penstock.readers.blocks import Blocks

WHOLE_BYTES = 128 * MIB
"""Data that takes no more in memory is looked at completely."""
_NUM_PIECES = 32
_PIECES_BYTES = 64 * MIB
"""Of all pieces together."""
_MOST_PIECE_ROWS = 8192
_MOST_PASSED_BYTES = 1024 * MIB
"""Rows that are decoded on the way to pieces within blocks, in all."""


@dataclass(frozen=True, slots=True)
class BlockPieces:
    """Rows of one block that are looked at: intervals in ascending order, counted from 0 in the block."""

    block: int
    intervals: tuple[tuple[int, int], ...]

    @property
    def num_rows(self) -> int:
        """Rows in all intervals."""
        return sum(end - start for start, end in self.intervals)


def choose_pieces(blocks: Blocks, row_bytes: int, *, full: bool = False) -> list[BlockPieces]:
    """All rows where they are few, or `full` is asked for; else pieces that begin at even distances.

    To begin in the middle of a block, the rows before must be decoded in some formats. Where that would be much, pieces
    begin at the starts of the blocks they fall into.
    """
    if full or blocks.total_rows * row_bytes <= WHOLE_BYTES:
        return [BlockPieces(block, ((0, int(rows)),)) for block, rows in enumerate(blocks.num_rows.tolist())]
    piece_rows = max(1, min(_MOST_PIECE_ROWS, _PIECES_BYTES // row_bytes // _NUM_PIECES))
    ends = np.cumsum(blocks.num_rows)
    targets = np.linspace(0, max(0, blocks.total_rows - piece_rows), _NUM_PIECES).astype(np.int64)
    found = np.searchsorted(ends, targets, side="right")
    starts = targets - (ends - blocks.num_rows)[found]
    last_starts = {int(block): int(start) for block, start in zip(found, starts, strict=True)}
    if sum(last_starts.values()) * row_bytes > _MOST_PASSED_BYTES:
        starts = np.zeros_like(starts)
    places = sorted(set(zip(found.tolist(), starts.tolist(), strict=True)))
    return [
        BlockPieces(block, _apart([start for _, start in group], piece_rows, int(blocks.num_rows[block])))
        for block, group in groupby(places, key=lambda place: place[0])
    ]


def _apart(starts: list[int], piece_rows: int, block_rows: int) -> tuple[tuple[int, int], ...]:
    """Intervals that begin at these rows, end in the block, and do not overlap."""
    ends = [*starts[1:], block_rows]
    return tuple(
        (start, min(start + piece_rows, end)) for start, end in zip(starts, ends, strict=True) if start < end
    )
