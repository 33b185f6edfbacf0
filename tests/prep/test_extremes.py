"""The least and the greatest, chunk by chunk."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from penstock.prep.contents import Extremes


def extremes(*chunks):
    found = Extremes()
    for chunk in chunks:
        found.add(np.asarray(chunk))
    return found


@given(
    arrays.arrays(st.sampled_from(["f2", "f4", "f8", "i1", "u8", "?"]), st.integers(1, 20)),
    st.integers(0, 20),
)
def test_chunks_make_no_difference(values, at):
    found = extremes(values[:at], values[at:])
    numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values

    assert found.num_nan == len(values) - len(numbers)
    assert (found.least, found.most) == ((numbers.min(), numbers.max()) if len(numbers) else (None, None))


def test_nan_is_left_out_and_infinity_is_not():
    found = extremes([[np.nan, 1.0]], [[np.nan, np.nan]], [[-np.inf, 0.5]])

    assert (found.least, found.most, found.num_nan) == (-np.inf, 1.0, 3)


def test_times_have_extremes_and_texts_have_none():
    found = extremes(np.array(["2024-01-02", "NaT"], "M8[D]"), np.array(["2023-05-01"], "M8[D]"))

    assert (str(found.least), str(found.most), found.num_nan) == ("2023-05-01", "2024-01-02", 1)
    assert extremes(np.array(["a", "b"])) == Extremes()
