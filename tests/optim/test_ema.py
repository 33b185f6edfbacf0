"""A running mean of dense parameters."""

import pytest
import torch

from penstock.optim.ema import DenseAverages


def averaged(decay=0.5):
    weight = torch.nn.Parameter(torch.zeros(2))
    return weight, DenseAverages({"deep.weight": weight}, decay)


def move(weight, averages, *values):
    for value in values:
        weight.data.fill_(value)
        averages.update()


def mean_of(weight, averages):
    with averages.applied():
        return weight.tolist()


def test_it_starts_as_the_parameters_after_the_first_step_and_follows_them():
    weight, averages = averaged(decay=0.75)
    move(weight, averages, 8.0)
    assert mean_of(weight, averages) == [8.0, 8.0]

    move(weight, averages, 0.0, 2.0)
    assert mean_of(weight, averages) == [0.75 * 6.0 + 0.25 * 2.0] * 2


def test_parameters_come_back_also_after_an_error():
    weight, averages = averaged()
    move(weight, averages, 4.0, 2.0)

    with pytest.raises(IndexError), averages.applied():
        weight.tolist()[9]

    assert weight.tolist() == [2.0, 2.0]


def test_before_the_first_step_the_parameters_are_used_whatever_was_loaded_into_them():
    weight, averages = averaged()
    weight.data.fill_(5.0)

    assert mean_of(weight, averages) == [5.0, 5.0]


def test_it_goes_on_from_its_state_after_every_step():
    values = [1.0, 4.0, 2.0, 8.0]
    expected_weight, expected = averaged()
    move(expected_weight, expected, *values)
    for stop in range(len(values)):
        weight, before = averaged()
        move(weight, before, *values[:stop])
        after = DenseAverages({"deep.weight": weight}, 0.5)
        after.load_state_dict(before.state_dict())
        move(weight, after, *values[stop:])

        assert mean_of(weight, after) == mean_of(expected_weight, expected)


def test_a_model_without_dense_parameters_has_nothing_to_average():
    averages = DenseAverages({})
    averages.update()

    with averages.applied():
        pass
