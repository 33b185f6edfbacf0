"""Rows of similar length together inside a shuffle window."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import CheckpointError
from penstock.data.cut import RowCut
from penstock.data.row_cost import SequenceLength
from penstock.data.shuffle import Bucketing, Shuffle, by_length
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


@pytest.mark.parametrize(("window_rows", "plain", "bucketed"), [(2048, 10.4, 3.0), (20_000, 10.7, 1.3)])
def test_padding_shrinks_the_more_the_larger_the_window(
    window_rows: int, plain: float, bucketed: float
) -> None:
    """Steps after padding, as a multiple of the real ones."""
    lengths = skewed_lengths(20_000)

    def padding(bucketing: Bucketing | None) -> float:
        stage = Shuffle(sequences(lengths), window_rows, 1, bucketing=bucketing)
        return round(padded_steps(batch_lengths(stage, 256)) / sum(lengths), 1)

    assert (padding(None), padding(Bucketing(CLICKS, 256))) == (plain, bucketed)


@pytest.mark.parametrize("num_rows", [0, 1, 3, 4, 5, 99, 100, 101])
def test_a_short_run_is_of_similar_length_too_and_comes_last(num_rows: int) -> None:
    generator = np.random.default_rng(0)
    rows = by_length(generator.permutation(num_rows), np.arange(num_rows), 4, generator)

    assert sorted(rows) == list(range(num_rows))
    for start in range(0, num_rows, 4):
        run = rows[start : start + 4]
        assert run.tolist() == list(range(run[0], run[0] + len(run)))


def test_windows_are_of_whole_runs() -> None:
    bucketing = Bucketing(CLICKS, 4)
    stage = Shuffle(sequences([1] * 20), 11, 1, bucketing=bucketing)

    assert stage.order["shuffle"] == {
        "num_rows": 8,
        "seed": 1,
        "bucket_by": ["clicks", ";", None],
        "run_rows": 4,
    }
    assert [bucketing.window_rows(num_rows) for num_rows in (1, 3, 4, 5, 8)] == [1, 3, 4, 4, 8]


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        (None, Bucketing(CLICKS, 3), r"shuffle bucket_by None but the run has \['clicks', ';', None\]"),
        (Bucketing(CLICKS, 3), None, r"shuffle bucket_by \['clicks', ';', None\] but the run has None"),
        (Bucketing(CLICKS, 3), Bucketing(CLICKS, 2), "shuffle run_rows 3 but the run has 2"),
    ],
    ids=["not before", "no more", "other runs"],
)
def test_a_place_of_another_order_is_refused(
    was: Bucketing | None, now: Bucketing | None, message: str
) -> None:
    saved = Shuffle(sequences([1]), 6, 1, bucketing=was).state_dict()

    with pytest.raises(CheckpointError, match=message):
        Shuffle(sequences([1]), 6, 1, bucketing=now).load_state_dict(saved)
