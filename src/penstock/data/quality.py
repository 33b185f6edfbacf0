"""How well a shuffle mixes, measured on the batches of a run."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.readers.order import Blocks, Int64Array
from penstock.readers.stream import ROW_COLUMN, ids_of_rows

_STRETCH_ROWS = 65_536


class ShuffleQuality:
    """Looks at some of the batches of a run and tells how near their order is to an ideal shuffle.

    Memory does not grow with the batches seen. Batches that are not looked at cost nothing: `every` says that one in
    so many is.
    """

    def __init__(
        self, blocks: Blocks, label: str | None = None, every: int = 16, stretch_rows: int = _STRETCH_ROWS
    ) -> None:
        """A block of more than `stretch_rows` rows counts as several, since rows near each other are alike.

        `label` is a column whose numbers should not go on from one row to the next.
        """
        self._label = label
        self._first_ids, self._num_rows = _stretches(blocks, stretch_rows)
        self._every = every
        self._num_seen = 0
        self._num_looked_at = 0
        self._coverage_sum = 0.0
        self._num_pairs, self._shift = 0, 0.0
        self._sums = np.zeros(5)
        """Of pairs of neighbouring labels: both, both squared, and their products."""

    def see(self, batch: pa.RecordBatch) -> None:
        is_skipped = self._num_seen % self._every > 0
        self._num_seen += 1
        if is_skipped or not batch.num_rows:
            return
        row_ids = np.asarray(batch.column(ROW_COLUMN))
        stretches = np.searchsorted(self._first_ids, row_ids, side="right")
        self._coverage_sum += len(np.unique(stretches)) / expected_blocks(self._num_rows, len(row_ids))
        self._num_looked_at += 1
        labels = None if self._label is None else batch.column(self._label)
        if labels is not None and (pa.types.is_integer(labels.type) or pa.types.is_floating(labels.type)):
            self._add_labels(np.asarray(labels.to_numpy(zero_copy_only=False), np.float64))

    def _add_labels(self, labels: NDArray[np.float64]) -> None:
        """Take in labels in their order; pairs with one that is not finite are left out."""
        first, second = labels[:-1], labels[1:]
        usable = np.isfinite(first) & np.isfinite(second)
        first, second = first[usable], second[usable]
        if not len(first):
            return
        if not self._num_pairs:
            # Sums of squares of numbers far from 0 would lose what differs in them.
            self._shift = float(first.mean())
        first, second = first - self._shift, second - self._shift
        self._num_pairs += len(first)
        self._sums += [first.sum(), second.sum(), first @ first, second @ second, first @ second]

    def score(self) -> dict[str, float]:
        """What was found so far; empty before the first batch.

        `block_coverage`: the blocks that a batch draws on, as a part of what it would be in an ideal shuffle; 1 is as
        good as ideal. `label_autocorrelation`: of the labels of neighbours in a batch, -1 to 1; 0 is ideal. It is left
        out where labels do not differ. `batches_looked_at`: how many batches this is from.
        """
        if not self._num_looked_at:
            return {}
        score = {"block_coverage": self._coverage_sum / self._num_looked_at}
        if self._num_pairs:
            first, second, first_squares, second_squares, products = self._sums / self._num_pairs
            variances = (first_squares - first**2) * (second_squares - second**2)
            if variances > 0:
                correlation = (products - first * second) / np.sqrt(variances)
                score["label_autocorrelation"] = float(np.clip(correlation, -1, 1))
        return score | {"batches_looked_at": self._num_looked_at}


def expected_blocks(block_rows: Int64Array, num_drawn: int) -> float:
    """On how many blocks a draw of so many different rows falls when each row is equally likely.

    A block is missed with the probability that none of its n rows is among those drawn, the product of 1 - n / (N - i)
    over the rows drawn so far, i; all factors are taken at the middle i, which is off by well under a thousandth of the
    result.
    """
    total_rows = int(block_rows.sum())
    rows_at_middle = total_rows - (num_drawn - 1) / 2
    missed = np.clip(1 - block_rows / rows_at_middle, 0, None) ** num_drawn
    return float((1 - missed).sum())


def _stretches(blocks: Blocks, stretch_rows: int) -> tuple[Int64Array, Int64Array]:
    """The row ids at which stretches begin, ascending, and how many rows each has."""
    per_block = -(-blocks.num_rows // stretch_rows)
    block = np.repeat(np.arange(len(blocks)), per_block)
    first_of_block = np.repeat(np.cumsum(per_block) - per_block, per_block)
    skipped = (np.arange(len(block)) - first_of_block) * stretch_rows
    first_ids = ids_of_rows(blocks.file_index[block], blocks.first_row[block] + skipped)
    return first_ids, np.minimum(stretch_rows, blocks.num_rows[block] - skipped)
