"""Learning rates by their formulas, and the one with a memory."""

import math

import pytest

from penstock.config.errors import CheckpointError, ConfigError
from penstock.optim.schedules import PlateauSchedule, build_schedule, preview_schedule
from penstock.optim.sections import DenseOptimizer, EMAConfig
from penstock.optim.sections.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestartsLR,
    ExponentialDecayLR,
    ManualStepLR,
    ReduceOnPlateauLR,
)


@pytest.mark.parametrize(
    ("section", "lr", "rates"),
    [
        (ConstantLR(), 0.3, [0.3, 0.3]),
        (ReduceOnPlateauLR(), 0.3, [0.3, 0.3]),
        (
            ManualStepLR(schedule_sizes=[2, 4], learning_rates=[0.1, 0.01]),
            1.0,
            [1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01],
        ),
        (
            ManualStepLR(schedule_sizes=[4, 5], learning_rates=[5.0, 2.0], warmup=True),
            1.0,
            [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 2.0],
        ),
        ({}, 0.8, [0.8, 0.8]),
        (DenseOptimizer(adam_optimizer={}), 0.8, [0.8, 0.8]),
    ],
)
def test_the_first_rates_of_a_schedule(section, lr, rates):
    assert preview_schedule(section, lr, steps=len(rates) - 1) == rates


@pytest.mark.parametrize(
    ("section", "options"),
    [
        (ExponentialDecayLR, {"decay_size": 1}),
        (CosineAnnealingLR, {"T_max": 4}),
        (CosineAnnealingWarmRestartsLR, {"T_0": 4}),
        (ReduceOnPlateauLR, {}),
    ],
)
def test_a_minimum_above_the_base_rate_is_refused(section, options):
    schedule = section(min_learning_rate=0.5, **options)
    problem = "min_learning_rate: is 0.5, above lr 0.1, from which the schedule goes down; lower one or raise"
    with pytest.raises(ConfigError, match=f"{section.__name__}.{problem}"):
        preview_schedule(schedule, lr=0.1, steps=3)

    assert preview_schedule(schedule, lr=0.5, steps=2) == [0.5, 0.5, 0.5]
    assert preview_schedule(schedule, lr=0.0, steps=2) == [0.0, 0.0, 0.0]


def test_warm_restarts_fall_exactly_on_their_steps_also_late_in_a_run():
    for first, factor, restarts in (
        (1, 3, [0, 1, 4, 13, 40, 121]),
        (3, 1, [0, 3, 6, 9]),
        (2, 2, [0, 2, 6, 14]),
    ):
        section = CosineAnnealingWarmRestartsLR(T_0=first, T_mult=factor)
        rates = preview_schedule(section, lr=1.0, steps=restarts[-1])
        assert [step for step, rate in enumerate(rates) if rate == 1.0] == restarts

    late, schedule = (3**25 - 1) // 2, build_schedule(CosineAnnealingWarmRestartsLR(T_0=1, T_mult=3), 1.0)
    assert schedule.value(late, 0) == 1.0
    assert schedule.value(late - 1, 0) < 1e-12


WARM = {"warmup_size": 3, "warmup_learning_rate": 0.1}


def warmed(rate, base, n):
    """The warm-up of the run file, before a rate that counts from its end."""
    return 0.1 + (base - 0.1) * n / 3 if n < 3 else rate(n - 3)


def restarting(m):
    """0.02 + 0.24 * (1 + cos) with cycles of 1, 3, 9, ... steps."""
    size = 1
    while m >= size:
        m, size = m - size, size * 3
    return 0.02 + 0.24 * (1 + math.cos(math.pi * m / size))


FORMULAS = {
    "exponential": (
        ExponentialDecayLR(decay_size=7, decay_factor=0.9, staircase=False, min_learning_rate=0.02, **WARM),
        lambda m: max(0.5 * 0.9 ** (m / 7), 0.02),
    ),
    "stairs": (
        ExponentialDecayLR(decay_size=7, decay_factor=0.9, min_learning_rate=0.02, **WARM),
        lambda m: max(0.5 * 0.9 ** (m // 7), 0.02),
    ),
    "cosine": (
        CosineAnnealingLR(T_max=50, min_learning_rate=0.02, **WARM),
        lambda m: 0.02 + 0.24 * (1 + math.cos(math.pi * min(m, 50) / 50)),
    ),
    "restarts": (CosineAnnealingWarmRestartsLR(T_0=1, T_mult=3, min_learning_rate=0.02, **WARM), restarting),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_every_step_equals_the_formula_also_in_and_after_the_warm_up(name):
    section, rate = FORMULAS[name]

    assert preview_schedule(section, lr=0.5, steps=500) == pytest.approx(
        [warmed(rate, 0.5, n) for n in range(501)], abs=1e-12, rel=0
    )
    by_epoch = build_schedule(section.model_copy(update={"by_epoch": True}), 0.5)
    assert by_epoch.value(step=99, epoch=5) == build_schedule(section, 0.5).value(5, 0)


def test_what_is_no_schedule_is_refused():
    with pytest.raises(ConfigError, match="EMAConfig is not the section of a schedule; known: ConstantLR, "):
        preview_schedule(EMAConfig(), lr=1.0, steps=2)


@pytest.mark.parametrize(("lr", "steps"), [(math.nan, 3), ("0.1", 3), (0.1, -1)])
def test_a_preview_of_nothing_that_could_be_is_refused(lr, steps):
    with pytest.raises(ConfigError, match=r"preview_schedule: lr .*, steps .*: a rate is a number from 0 on"):
        preview_schedule(ConstantLR(), lr, steps)


def rates(schedule, values):
    """The rate after each of these evaluations."""
    observed = []
    for value in values:
        schedule.observe(value)
        observed.append(schedule.value(step=0, epoch=0))
    return observed


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"patience": 1}, [0.6, 0.7, 0.7, 0.7, 0.7, 0.7, 0.8], [0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2]),
        ({"mode": "min"}, [3.0, 2.0, 2.5], [0.8, 0.8, 0.4]),
        ({"min_delta": 0.25}, [0.5, 0.75, 1.0], [0.8, 0.4, 0.4]),
        ({"min_learning_rate": 0.3}, [0.5] * 4, [0.8, 0.4, 0.3, 0.3]),
        ({}, [math.nan, 0.5], [0.4, 0.4]),
    ],
    ids=["patience", "a loss that falls", "a small gain", "the minimum", "not a number"],
)
def test_the_rate_falls_when_evaluations_get_no_better(options, values, expected):
    section = ReduceOnPlateauLR.model_validate({"patience": 0, "factor": 0.5, **options})

    assert rates(PlateauSchedule(section, base=0.8), values) == pytest.approx(expected)


def test_the_state_of_another_metric_is_refused():
    watched_auc = PlateauSchedule(ReduceOnPlateauLR(), 1.0)

    with pytest.raises(CheckpointError, match="watched 'auc' so far, now 'ndcg'; keep the metric"):
        PlateauSchedule(ReduceOnPlateauLR(metric="ndcg"), 1.0).load_state_dict(watched_auc.state_dict())
