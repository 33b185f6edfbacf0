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
_FEW_BYTES = 16 * MIB
"""Of all rows of a short look together, and the most that is decoded on the way to them."""


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
    return _pieces(blocks, _places(blocks, piece_rows, _MOST_PASSED_BYTES // row_bytes), piece_rows)


def choose_few_pieces(blocks: Blocks, row_bytes: int, most_rows: int) -> list[BlockPieces]:
    """All rows where they are no more than `most_rows`, else pieces of so many together, or of fewer large ones.

    They come in such an order that whoever stops early has seen rows from all over the data.
    """
    num_rows = max(1, min(most_rows, _FEW_BYTES // row_bytes))
    if blocks.total_rows <= num_rows and len(blocks) <= _NUM_PIECES:
        return choose_pieces(blocks, row_bytes, full=True)
    places = _places(blocks, max(1, num_rows // _NUM_PIECES), _FEW_BYTES // row_bytes)
    return _scattered(_pieces(blocks, places, max(1, num_rows // max(1, len(places)))))


def _places(blocks: Blocks, piece_rows: int, most_passed_rows: int) -> list[tuple[int, int]]:
    """Blocks and rows in them where pieces begin: at even distances, or at the starts of their blocks."""
    if not blocks.total_rows:
        return []
    ends = np.cumsum(blocks.num_rows)
    targets = np.linspace(0, max(0, blocks.total_rows - piece_rows), _NUM_PIECES).astype(np.int64)
    found = np.searchsorted(ends, targets, side="right")
    starts = targets - (ends - blocks.num_rows)[found]
    last_starts = {int(block): int(start) for block, start in zip(found, starts, strict=True)}
    if sum(last_starts.values()) > most_passed_rows:
        starts = np.zeros_like(starts)
    return sorted(set(zip(found.tolist(), starts.tolist(), strict=True)))


def _pieces(blocks: Blocks, places: list[tuple[int, int]], piece_rows: int) -> list[BlockPieces]:
    return [
        BlockPieces(block, _apart([start for _, start in group], piece_rows, int(blocks.num_rows[block])))
        for block, group in groupby(places, key=lambda place: place[0])
    ]


def _scattered(pieces: list[BlockPieces]) -> list[BlockPieces]:
    """The same in the order of their numbers' bits read backwards: each next one falls into the widest gap."""
    num_bits = len(pieces).bit_length()
    return [pieces[index] for index in sorted(range(len(pieces)), key=lambda at: f"{at:0{num_bits}b}"[::-1])]


def _apart(starts: list[int], piece_rows: int, block_rows: int) -> tuple[tuple[int, int], ...]:
    """Intervals that begin at these rows, end in the block, and do not overlap."""
    ends = [*starts[1:], block_rows]
    return tuple(
        (start, min(start + piece_rows, end)) for start, end in zip(starts, ends, strict=True) if start < end
    )
