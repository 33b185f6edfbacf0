"""Rows of similar length together inside a shuffle window."""

import numpy as np
import pyarrow as pa

from penstock.data.cut import RowCut
from penstock.data.row_cost import SequenceLength
from penstock.data.shuffle import Bucketing, Shuffle
from penstock.readers.stream import RecordStream
from tests.data.costs import ColumnStream

CLICKS = SequenceLength("clicks")


def sequences(lengths: list[int]) -> RecordStream:
    clicks = pa.array([[0] * length for length in lengths], pa.list_(pa.int8()))
    return ColumnStream(clicks, name="clicks")


def skewed_lengths(num_rows: int) -> list[int]:
    """Most histories are short, a few are very long."""
    drawn = np.random.default_rng(0).lognormal(mean=2.5, sigma=1.0, size=num_rows)
    return np.clip(drawn, 0, 500).astype(int).tolist()


def batch_lengths(stream: RecordStream, batch_rows: int) -> list[np.ndarray]:
    return [CLICKS.of(batch) for batch in RowCut(stream, batch_rows)]


def padded_steps(batches: list[np.ndarray]) -> int:
    """Steps of all batches when each is padded to its longest row."""
    return sum(len(lengths) * int(lengths.max()) for lengths in batches)


def test_a_batch_has_rows_of_similar_length_and_batches_come_in_random_order() -> None:
    lengths = [7, 1, 6, 2, 5, 3, 4, 0]
    batches = batch_lengths(Shuffle(sequences(lengths), 8, 1, bucketing=Bucketing(CLICKS, 2)), 2)

    assert sorted(map(sorted, batches)) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [min(batch) for batch in batches] != [0, 2, 4, 6]
