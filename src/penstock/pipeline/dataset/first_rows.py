"""The first rows of a data set, as a data set."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.readers.blocks import Blocks
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint
from penstock.readers.survey import BlockDecoder, Survey
from penstock.runtime.budget import Share


def first_rows_of(survey: Survey, num_rows: int) -> Survey:
    """A survey whose blocks hold the first rows of another's, in the order of the files."""
    blocks = survey.blocks
    starts = np.cumsum(blocks.num_rows) - blocks.num_rows
    kept = int(np.searchsorted(starts, num_rows, side="left"))
    left = np.minimum(blocks.num_rows[:kept], num_rows - starts[:kept])
    return FirstRows(survey, Blocks(blocks.file_index[:kept], blocks.first_row[:kept], left))


@dataclass(frozen=True)
class FirstRows(Survey):
    """Everything is as in the whole survey, except that later blocks are not there."""

    whole: Survey
    kept: Blocks

    @property
    def blocks(self) -> Blocks:
        """The first ones; the last of them may be shorter than it is."""
        return self.kept

    @property
    def files(self) -> tuple[DataFile, ...]:  # type: ignore[override]
        """All files."""
        return self.whole.files

    @property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        """Of all files."""
        return self.whole.fingerprints

    @property
    def columns(self) -> pa.Schema:
        """As in the whole."""
        return self.whole.columns

    @property
    def row_bytes(self) -> int:
        """As in the whole."""
        return self.whole.row_bytes

    @property
    def least_bytes(self) -> int:
        """As in the whole."""
        return self.whole.least_bytes

    @property
    def ample_bytes(self) -> int:
        """As in the whole."""
        return self.whole.ample_bytes

    @property
    def block_bytes(self) -> int:
        """As in the whole."""
        return self.whole.block_bytes

    def decoder(self, share: Share) -> BlockDecoder:
        """The decoder of the whole: the blocks that are left have the numbers that they have there."""
        return self.whole.decoder(share)
