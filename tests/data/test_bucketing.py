"""Rows of similar length together inside a shuffle window."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import CheckpointError
from penstock.data.cut import RowCut
from penstock.data.row_cost import SequenceLength
from penstock.data.shuffle import Bucketing, Shuffle, window_order
from penstock.readers.stream import RecordStream, StreamPosition
from tests.data.streams import ColumnStream

CLICKS = SequenceLength("clicks")


def sequences(lengths: list[int]) -> RecordStream:
    clicks = pa.array([[0] * length for length in lengths], pa.list_(pa.int8()))
    return ColumnStream(clicks, name="clicks")


def batch_lengths(stream: RecordStream, batch_rows: int) -> list[np.ndarray]:
    return [CLICKS.of(batch) for batch in RowCut(stream, batch_rows)]


def test_a_batch_has_rows_of_similar_length_and_batches_come_in_random_order() -> None:
    lengths = [7, 1, 6, 2, 5, 3, 4, 0]
    batches = batch_lengths(Shuffle(sequences(lengths), 8, 1, bucketing=Bucketing(CLICKS, 2)), 2)

    assert sorted(map(sorted, batches)) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [min(batch) for batch in batches] != [0, 2, 4, 6]


def test_padding_shrinks_the_more_the_larger_the_window() -> None:
    """Steps after padding, as a multiple of the real ones; most histories are short, a few are very long."""
    drawn = np.random.default_rng(0).lognormal(mean=2.5, sigma=1.0, size=20_000)
    lengths = np.clip(drawn, 0, 500).astype(int).tolist()

    def padding(window_rows: int, bucketing: Bucketing | None) -> float:
        stage = Shuffle(sequences(lengths), window_rows, 1, bucketing=bucketing)
        steps = sum(len(batch) * int(batch.max()) for batch in batch_lengths(stage, 256))
        return round(steps / sum(lengths), 1)

    bucketing = Bucketing(CLICKS, 256)
    assert (padding(2048, None), padding(2048, bucketing), padding(20_000, bucketing)) == (10.4, 3.0, 1.3)


@pytest.mark.parametrize("num_rows", [0, 3, 4, 101])
def test_a_short_run_is_of_similar_length_too_and_comes_last(num_rows: int) -> None:
    order = {"shuffle": {"seed": 0, "run_rows": 4}}
    rows = window_order(order, StreamPosition(0), 0, num_rows, np.arange(num_rows))

    assert sorted(rows) == list(range(num_rows))
    for start in range(0, num_rows, 4):
        run = rows[start : start + 4]
        assert run.tolist() == list(range(run[0], run[0] + len(run)))


def test_a_position_in_other_runs_is_refused() -> None:
    saved = Shuffle(sequences([1]), 6, 1, bucketing=Bucketing(CLICKS, 3)).state_dict()

    with pytest.raises(CheckpointError, match="shuffle run_rows 3 but the run has 2"):
        Shuffle(sequences([1]), 6, 1, bucketing=Bucketing(CLICKS, 2)).load_state_dict(saved)
