"""Arrays are used again when nobody has them, and never before."""

import pickle

import numpy as np
import pytest
import torch

from penstock.runtime.rooms import Rooms


def test_an_array_that_was_let_go_is_given_out_again() -> None:
    rooms = Rooms()
    first = rooms.take((2, 3), np.float32)
    place = first.ctypes.data
    del first

    assert rooms.take((2, 3), np.float32).ctypes.data == place


@pytest.mark.parametrize(
    "use",
    [
        lambda array: array,
        lambda array: array[1:],
        lambda array: array.reshape(-1)[2:].view(np.int32),
        torch.from_numpy,
        lambda array: torch.from_numpy(array.reshape(-1))[2:],
    ],
    ids=["the array", "a view", "a view of a view", "a tensor", "a view of a tensor"],
)
def test_an_array_in_use_is_left_alone(use) -> None:
    rooms = Rooms()
    used = use(rooms.take((2, 3), np.float32))
    expected = used + 0
    rooms.take((2, 3), np.float32)[:] = 7

    assert np.array_equal(used, expected)


def test_another_shape_or_type_is_another_array() -> None:
    rooms = Rooms()
    rooms.take((2, 3), np.float32)

    assert rooms.take((3, 2), np.float32).shape == (3, 2)
    assert rooms.take((2, 3), np.int64).dtype == np.int64


def test_no_more_than_a_few_are_kept() -> None:
    rooms = Rooms(most=2)
    used = [rooms.take((4,), np.int64) for _ in range(5)]
    places = {array.ctypes.data for array in used[-2:]}
    del used

    again = [rooms.take((4,), np.int64) for _ in range(2)]
    assert {array.ctypes.data for array in again} == places


def test_another_process_begins_with_none() -> None:
    rooms = Rooms()
    rooms.take((1000,), np.int64)

    assert len(pickle.dumps(rooms)) < 1000
