"""How many rows went by, and which: the same number for the same rows in any order."""

import numpy as np
import pyarrow as pa

from penstock.config.sizes import MIB
from penstock.features.hashes import row_hashes

_MOST_ROWS = 1 << 14
_MOST_BYTES = 4 * MIB
"""Of rows that are hashed at a time: what is held beside them is about as much."""


class Tally:
    """Counts rows, and adds up their hashes modulo 2**64."""

    def __init__(self) -> None:
        self.num_rows = 0
        self._sum = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        self.num_rows += batch.num_rows
        piece_rows = max(1, min(_MOST_ROWS, batch.num_rows * _MOST_BYTES // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, piece_rows):
            hashes = row_hashes(batch.slice(start, piece_rows))
            self._sum = (self._sum + int(hashes.sum(dtype=np.uint64))) % 2**64

    @property
    def checksum(self) -> str:
        """The sum, as people compare it."""
        return f"{self._sum:016x}"
