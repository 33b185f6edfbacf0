"""How near the order of a run is to an ideal shuffle."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.data.shuffle import ShuffleQuality
from penstock.readers.order import Blocks
from penstock.readers.stream import ROW_BITS, ROW_COLUMN

NUM_FILES, BLOCK_ROWS, BATCH_ROWS = 4, 500, 256
BLOCKS = Blocks.of((block // 10, block % 10 * BLOCK_ROWS, BLOCK_ROWS) for block in range(NUM_FILES * 10))
NUM_ROWS = BLOCKS.total_rows
FILE, ROW = np.divmod(np.arange(NUM_ROWS), 10 * BLOCK_ROWS)
ROW_IDS = (FILE << ROW_BITS) | ROW
LABELS = np.arange(NUM_ROWS) // 700 % 2
"""Runs of equal labels, as in a log that was sorted."""


def batch_of(row_ids: np.ndarray, labels: np.ndarray | None = None) -> pa.RecordBatch:
    columns = {ROW_COLUMN: row_ids} if labels is None else {ROW_COLUMN: row_ids, "label": labels}
    return pa.record_batch(columns)


def score(order: np.ndarray, blocks: Blocks = BLOCKS, **options: int) -> dict[str, float]:
    """Of all rows in this order."""
    quality = ShuffleQuality(blocks, "label", every=1, **options)
    for rows in np.split(order, range(BATCH_ROWS, len(order), BATCH_ROWS)):
        quality.see(batch_of(ROW_IDS[rows], LABELS[rows]))
    return quality.score()


def in_windows(window_rows: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    windows = np.split(np.arange(NUM_ROWS), range(window_rows, NUM_ROWS, window_rows))
    return np.concatenate([generator.permutation(window) for window in windows])


@pytest.mark.parametrize(
    ("window_rows", "coverage", "correlation"),
    [(1, 0.04, 1.0), (1000, 0.06, 0.10), (5000, 0.26, 0.01), (NUM_ROWS, 1.0, 0.0)],
)
def test_larger_windows_score_better(window_rows: int, coverage: float, correlation: float) -> None:
    found = score(in_windows(window_rows))

    assert round(found["block_coverage"], 2) == coverage
    assert found["label_autocorrelation"] == pytest.approx(correlation, abs=0.005)


def test_a_block_that_is_the_whole_data_set_does_not_look_mixed() -> None:
    blocks = Blocks.of([(0, 0, NUM_ROWS)])
    rows = np.arange(BATCH_ROWS)

    one_block, stretches = ShuffleQuality(blocks), ShuffleQuality(blocks, stretch_rows=600)
    for quality in (one_block, stretches):
        quality.see(batch_of(rows))

    assert one_block.score()["block_coverage"] == 1.0
    assert stretches.score()["block_coverage"] == pytest.approx(1 / 34, rel=0.01)
