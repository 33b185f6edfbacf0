"""Lists of different lengths."""

import numpy as np
import pytest

from penstock.data.arrow_numpy import Ragged

CLICKS = Ragged(np.array([7, 8, 9, 4]), np.array([0, 2, 2, 3, 4]))


def test_rows_are_views():
    assert len(CLICKS) == 4
    assert [row.tolist() for row in CLICKS] == CLICKS.tolist() == [[7, 8], [], [9], [4]]
    assert CLICKS[-1].tolist() == [4]
    assert np.shares_memory(CLICKS[0], CLICKS.values)
    assert CLICKS.lengths.tolist() == [2, 0, 1, 1]


def test_a_row_that_is_not_there():
    with pytest.raises(IndexError, match="there is no row 4; there are 4"):
        CLICKS[4]
    with pytest.raises(IndexError, match="not with a step of 2"):
        CLICKS[::2]


def test_padding():
    assert CLICKS.padded().tolist() == [[7, 8], [0, 0], [9, 0], [4, 0]]
    assert CLICKS.padded(1, fill=-1).tolist() == [[7], [-1], [9], [4]]
    assert CLICKS.padded(3).shape == (4, 3)


def test_lists_of_lists():
    visits = Ragged(CLICKS, np.array([0, 1, 4]))

    assert visits.tolist() == [[[7, 8]], [[], [9], [4]]]
    with pytest.raises(TypeError, match="lists of lists have no rectangle"):
        visits.padded()
