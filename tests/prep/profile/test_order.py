"""Whether rows are sorted by a column."""

import numpy as np
import pytest

from penstock.prep.profile.order import RowOrder


def order_of(*blocks):
    order = RowOrder()
    for block in blocks:
        order.add(np.array(block, np.int64))
    return order


def test_sorted_over_several_blocks():
    assert order_of([1, 2, 2], [], [3], [9, 10]).is_ascending


def test_a_step_back_between_blocks_is_seen():
    order = order_of([1, 2], [1, 2])

    assert not order.is_ascending
    assert (order.rises, order.falls, order.ties) == (2, 1, 0)


def test_a_constant_is_not_sorted_by():
    assert not order_of([1, 1, 1]).is_ascending


def test_rates():
    order = order_of([0, 0, 1, 0, 1])

    assert order.change_rate == 0.75
    assert order.fall_rate == pytest.approx(1 / 3)
