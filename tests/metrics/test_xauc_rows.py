"""A sample of rows stays uniform when it is joined, saved, and goes on with more room or less."""

import numpy as np
import pytest

from penstock.metrics.xauc_rows import RowSample


def sample_of(values, max_rows, seed=0):
    sample = RowSample(max_rows, seed)
    sample.add(np.asarray(values, np.float64), np.zeros(len(values)))
    return sample


def kept(sample):
    return sample.rows()[0].tolist()


def test_all_rows_while_they_fit_in_their_order():
    assert kept(sample_of([3.0, 1.0, 2.0], max_rows=3)) == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("max_rows", [50, 400])
def test_a_saved_sample_goes_on_as_one_that_was_never_saved(max_rows):
    """It had room for 100 rows; what it let go is gone, so it goes on by the same lots."""
    before = sample_of(np.arange(1000.0), 100)
    whole = sample_of(np.arange(2000.0), max_rows)
    after = RowSample(max_rows, seed=0)

    after.load_state_dict(before.state_dict())
    after.add(np.arange(1000.0, 2000.0), np.zeros(1000))

    assert set(kept(after)) <= set(kept(whole))
    assert after.num_seen == 2000
    earlier = sum(value < 1000 for value in kept(after))
    assert earlier == pytest.approx(len(kept(after)) / 2, rel=0.3)


def test_samples_of_other_sizes_are_joined_at_the_lower_lot():
    small, large = sample_of(np.arange(1000.0), 50), sample_of(np.arange(1000.0, 2000.0), 400)

    large.merge(small)

    earlier = sum(value < 1000 for value in kept(large))
    assert earlier == 50
    assert len(kept(large)) - earlier == pytest.approx(50, rel=0.4)


def test_no_more_rows_are_given_than_were_asked_for():
    assert len(kept(sample_of(np.arange(1000.0), 100))) == 100
