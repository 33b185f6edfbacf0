"""Blocks: the pieces of files that are read, permuted and skipped as units."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """All blocks of a data set in the order of the files, as columns; none is empty."""

    file_index: Int64Array
    first_row: Int64Array
    """The row of the file at which a block begins."""
    num_rows: Int64Array

    @classmethod
    def of(cls, blocks: Iterable[tuple[int, int, int]]) -> Self:
        """From (file index, first row in the file, number of rows) of each block; empty ones are left out."""
        table = np.array([block for block in blocks if block[2]], np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    def __len__(self) -> int:
        return len(self.num_rows)

    @cached_property
    def total_rows(self) -> int:
        """Rows of all blocks."""
        return int(self.num_rows.sum())

    @cached_property
    def checksum(self) -> int:
        """Of where the blocks lie: a place in one set of blocks means nothing in another."""
        return zlib.crc32(np.stack([self.file_index, self.first_row, self.num_rows]).tobytes())


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
