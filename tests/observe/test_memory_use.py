"""Planned beside measured."""

import pytest

from penstock.config.sizes import MIB
from penstock.observe.memory_use import StageUse, largest, measured_use, what_to_lower
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


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("metrics.xauc", "it holds most (70MiB); to take less, leave out metrics.xauc"),
        ("memory.limit", "no stage holds anything that a setting could make smaller"),
    ],
)
def test_what_makes_the_largest_stage_smaller(setting, line):
    stages = [StageUse("process", 400 * MIB, 400 * MIB), StageUse("it", 80 * MIB, 70 * MIB, setting)]

    assert largest(stages) == (None if setting == "memory.limit" else stages[1])
    assert what_to_lower(stages) == line
