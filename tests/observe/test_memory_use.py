"""Planned beside measured."""

import pytest

from penstock.config.sizes import MIB
from penstock.observe.memory_use import StageUse, largest, measured_use, planned_use, use_lines, what_to_lower
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryReport


def budget_of_a_run() -> MemoryBudget:
    budget = MemoryBudget(1000 * MIB)
    budget.share("process", 400 * MIB)
    budget.share("model", 100 * MIB, "embedding sizes in feature_configs")
    budget.share("step", 50 * MIB, "data_config.batch_size")
    budget.share("reader", 200 * MIB)
    budget.share("shuffle", 80 * MIB, "data_config.shuffle_buffer")
    return budget


def test_a_plan_ends_with_what_nobody_was_given():
    plan = planned_use(budget_of_a_run())

    assert [stage.name for stage in plan] == ["process", "model", "step", "reader", "shuffle", "free"]
    assert sum(stage.planned_bytes for stage in plan) == 1000 * MIB
    assert {stage.measured_bytes for stage in plan} == {None}


def test_what_no_stage_leases_counts_for_the_step():
    budget = budget_of_a_run()
    with budget.shares["reader"].lease(60 * MIB), budget.shares["shuffle"].lease(70 * MIB):
        pass
    report = MemoryReport(1000 * MIB, start_bytes=390 * MIB, peak_bytes=700 * MIB)
    measured = {use.name: use.measured_bytes for use in measured_use(budget, report, model_bytes=110 * MIB)}

    assert measured == {
        "process": 400 * MIB,
        "model": 110 * MIB,
        "step": (700 - 400 - 110 - 60 - 70) * MIB,
        "reader": 60 * MIB,
        "shuffle": 70 * MIB,
    }


def test_stages_that_leased_more_than_the_peak_leave_nothing_to_tell_of_the_step():
    report = MemoryReport(1000 * MIB, start_bytes=390 * MIB, peak_bytes=400 * MIB)
    uses = measured_use(budget_of_a_run(), report, model_bytes=110 * MIB)

    assert next(use for use in uses if use.name == "step").measured_bytes is None
    assert use_lines(uses) == [
        "stage    planned  measured  set by",
        "process   400MiB    400MiB  memory.limit",
        "model     100MiB    110MiB  embedding sizes in feature_configs",
        "step       50MiB            data_config.batch_size",
        "reader    200MiB        0B  memory.limit",
        "shuffle    80MiB        0B  data_config.shuffle_buffer",
    ]


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        (
            "data_config.shuffle_buffer",
            "it holds most (70MiB); to take less, lower data_config.shuffle_buffer",
        ),
        ("metrics.xauc", "it holds most (70MiB); to take less, leave out metrics.xauc"),
        ("memory.limit", "no stage holds anything that a setting could make smaller"),
    ],
)
def test_what_makes_the_largest_stage_smaller(setting, line):
    stages = [StageUse("process", 400 * MIB, 400 * MIB), StageUse("it", 80 * MIB, 70 * MIB, setting)]

    assert largest(stages) == (None if setting == "memory.limit" else stages[1])
    assert what_to_lower(stages) == line
