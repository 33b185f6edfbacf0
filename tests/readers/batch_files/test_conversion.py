"""Numbers in smaller types: exact, or rounded with a known error, or refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.readers.number_casts import fill, rounding_error


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


def test_rounding_is_measured_where_values_are_finite():
    array = np.array([1.0, 2049.0, np.inf, np.nan], np.float32)
    small = array.astype(np.float16)

    assert fill(np.zeros(4, np.float16), array) is None
    assert rounding_error(small, array) == 1.0
