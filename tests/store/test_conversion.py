"""Numbers in smaller types: exact, or rounded with a known error, or refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.store.conversion import fill, narrowed


def test_rounding_is_measured():
    array = np.array([[1.0, 2049.0], [-3.0, np.inf]], np.float32)

    small, largest_error = narrowed(array, np.float16)

    assert (small.dtype, small.tolist()) == (np.float16, [[1, 2048], [-3, np.inf]])
    assert largest_error == 1.0


def test_missing_values_have_no_error():
    small, largest_error = narrowed(np.array([np.nan, 1.0]), np.float16)

    assert np.isnan(small[0])
    assert largest_error == 0.0


def test_overflow_names_file_array_row_and_value():
    array = np.zeros((1000, 893), np.float32)
    array[700, 3] = 70000

    with pytest.raises(DataError) as error:
        narrowed(array, np.float16, name="strategic_features", file="batch_0003.batch")

    assert str(error.value) == (
        "batch_0003.batch: array 'strategic_features': row 700: 70000.0 does not fit float16 (at most 65504); "
        "keep float32 for it"
    )


@given(
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=8), st.sampled_from(["i1", "u2", "i4", "u8"])
)
def test_integers_come_out_as_they_went_in_or_not_at_all(numbers, dtype):
    source, target = np.array(numbers, np.int64), np.zeros(len(numbers), dtype)
    limits = np.iinfo(dtype)
    wrong = [place for place, number in enumerate(numbers) if not limits.min <= number <= limits.max]

    misfit = fill(target, source)

    if wrong:
        assert misfit is not None
        assert (misfit.index, misfit.value) == ((wrong[0],), numbers[wrong[0]])
    else:
        assert misfit is None
        assert target.tolist() == numbers


@pytest.mark.parametrize("source", [np.array(["1"]), np.array([None]), np.array([1j])])
def test_what_is_no_number_is_refused(source):
    assert "takes numbers only" in fill(np.zeros(1, np.float32), source).reason
