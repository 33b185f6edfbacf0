"""Reduce-on-plateau: the rate falls when evaluations stop getting better."""

import math

import pytest

from penstock.config.errors import CheckpointError
from penstock.optim.plateau import PlateauSchedule, plateaus
from penstock.optim.schedules import build_schedule, preview_schedule
from penstock.optim.sections.dense import DenseOptimizer
from penstock.optim.sections.schedules import ReduceOnPlateauLR


def rates(schedule, values):
    """The rate after each of these evaluations."""
    observed = []
    for value in values:
        schedule.observe(value)
        observed.append(schedule.value(step=0, epoch=0))
    return observed


def test_the_rate_falls_after_more_evaluations_without_gain_than_its_patience():
    schedule = PlateauSchedule(ReduceOnPlateauLR(patience=1, factor=0.5), base=0.8)

    assert rates(schedule, [0.6, 0.7, 0.7, 0.7, 0.7, 0.7, 0.8]) == [0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2]


def test_a_loss_is_better_when_it_falls():
    schedule = PlateauSchedule(ReduceOnPlateauLR(mode="min", patience=0, factor=0.5), base=1.0)

    assert rates(schedule, [3.0, 2.0, 2.5]) == [1.0, 1.0, 0.5]


def test_a_gain_up_to_min_delta_is_none():
    schedule = PlateauSchedule(ReduceOnPlateauLR(patience=0, factor=0.5, min_delta=0.25), base=1.0)

    assert rates(schedule, [0.5, 0.75, 1.0]) == [1.0, 0.5, 0.5]


def test_it_never_falls_under_the_minimum():
    schedule = PlateauSchedule(ReduceOnPlateauLR(patience=0, min_learning_rate=0.05), base=1.0)

    assert rates(schedule, [0.5] * 4) == pytest.approx([1.0, 0.1, 0.05, 0.05])


def test_not_a_number_is_no_improvement():
    schedule = PlateauSchedule(ReduceOnPlateauLR(patience=0, factor=0.5), base=1.0)

    assert rates(schedule, [math.nan, 0.5]) == [0.5, 0.5]


def test_a_base_of_zero_stays_zero():
    schedule = PlateauSchedule(ReduceOnPlateauLR(min_learning_rate=0.1), base=0.0)

    assert rates(schedule, [0.5]) == [0.0]


def test_it_goes_on_from_its_state_after_every_evaluation():
    section = ReduceOnPlateauLR(patience=1, factor=0.5)
    values = [0.6, 0.7, 0.7, 0.7, 0.6, 0.6, 0.9]
    expected = rates(PlateauSchedule(section, 1.0), values)
    for stop in range(len(values)):
        before, after = PlateauSchedule(section, 1.0), PlateauSchedule(section, 1.0)
        rates(before, values[:stop])
        after.load_state_dict(before.state_dict())

        assert rates(after, values[stop:]) == expected[stop:]


def test_the_state_of_another_metric_is_refused():
    watched_auc = PlateauSchedule(ReduceOnPlateauLR(), 1.0)

    with pytest.raises(CheckpointError, match="watched 'auc' so far, now 'ndcg'; keep the metric"):
        PlateauSchedule(ReduceOnPlateauLR(metric="ndcg"), 1.0).load_state_dict(watched_auc.state_dict())


def test_a_section_can_ask_for_it_and_its_preview_is_the_base_rate():
    section = DenseOptimizer.model_validate(
        {"adam_optimizer": {"lr": 0.3}, "reduce_on_plateau_learning_rate": {}}
    )
    plateau, constant = build_schedule(section), build_schedule(DenseOptimizer(adam_optimizer={}))

    assert plateaus({"dense": plateau, "sparse": constant}.items()) == {"dense": plateau}
    assert preview_schedule(ReduceOnPlateauLR(), 0.3, 2) == [0.3, 0.3, 0.3]
