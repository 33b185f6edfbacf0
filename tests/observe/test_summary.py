"""How results and memory read on a terminal."""

import pytest

from penstock.config.sizes import MIB
from penstock.observe.summary import StageUse, aligned, folded, largest, measured_use, results, use_lines
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryReport


@pytest.mark.parametrize(
    ("metrics", "losses", "shown"),
    [
        ({"auc": 0.75}, {"binary_cross_entropy": 0.5}, "auc 0.7500  binary_cross_entropy 0.5000"),
        ({"log_loss": 0.5}, {"binary_cross_entropy": 0.500001}, "log_loss 0.5000"),
        ({"log_loss_buy": 0.5}, {"binary_cross_entropy_buy": 0.5}, "log_loss_buy 0.5000"),
        ({"log_loss": 0.5}, {"binary_cross_entropy": 0.6}, "log_loss 0.5000  binary_cross_entropy 0.6000"),
        (
            {"log_loss_buy": 0.5},
            {"binary_cross_entropy_click": 0.5},
            "log_loss_buy 0.5000  binary_cross_entropy_click 0.5000",
        ),
        ({"mean_squared_error": 4.0}, {"l2_loss": 4.0}, "mean_squared_error 4.0000"),
        ({"auc": float("nan")}, {}, "auc undefined (no positive rows)"),
    ],
)
def test_no_number_is_printed_under_two_names(metrics, losses, shown):
    assert folded(results(metrics, losses, {"auc": "no positive rows"} if not losses else {})) == shown


def test_many_results_are_counted_where_they_are_listed_elsewhere():
    many = {f"accuracy_{index}": 0.5 for index in range(9)}

    assert results(many, {}, {}, "-v").endswith("and 3 more: -v")
    assert results(many, {}, {}).count("accuracy") == 9


def test_texts_are_folded_to_the_terminal_and_commands_as_a_shell_reads_them():
    words, command = " ".join(["word"] * 20), f"penstock predict {'a' * 40} --input FILES --output OUT"

    assert aligned([("one", words), ("next", command)]).splitlines() == [
        "one   " + " ".join(["word"] * 15),
        "      " + " ".join(["word"] * 5),
        f"next  penstock predict {'a' * 40} --input FILES \\",
        "      --output OUT",
    ]


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
    report = MemoryReport(
        1000 * MIB,
        stage_peaks={"build": 900 * MIB, "train": 690 * MIB, "evaluate": 700 * MIB},
        leased_peaks={"train": 100 * MIB, "evaluate": 130 * MIB},
    )
    measured = {use.name: use.measured_bytes for use in measured_use(budget, report, model_bytes=110 * MIB)}

    assert measured == {
        "process": 400 * MIB,
        "model": 110 * MIB,
        "step": (690 - 400 - 110 - 100) * MIB,  # in evaluations less: those lease more
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
    assert use_lines(stages)[-1] == line
