"""What commands print at their end."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.config.sizes import GIB, MIB
from penstock.observe.summary import (
    StageUse,
    evaluation_summary,
    largest,
    measured_use,
    prediction_summary,
    training_summary,
    use_lines,
)
from penstock.run.evaluate import EvaluationResult
from penstock.run.predict import PredictionResult
from penstock.run.train import TrainResult
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryReport
from penstock.training.evaluate import Evaluation

MEMORY = MemoryReport(
    limit_bytes=GIB,
    start_bytes=400 * MIB,
    peak_bytes=500 * MIB,
    peak_stage="train",
    stage_peaks={"build": 450 * MIB, "train": 500 * MIB},
)
MEMORY_LINE = (
    "peak 500MiB of 1GiB (in train); 400MiB of it are python, torch and torchrec, just by being imported"
)
CHECKPOINT = Path("run/checkpoints/step-20")
TRAINED = TrainResult(
    model_dir=Path("run"),
    checkpoint=CHECKPOINT,
    steps=20,
    epochs=2,
    rows=10_000,
    seconds=2.0,
    metrics={"auc": 0.75},
    losses={"binary_cross_entropy": 0.5},
    evaluated_step=20,
    memory=MEMORY,
    stages=[
        StageUse("process", 400 * MIB, 400 * MIB),
        StageUse("step", 40 * MIB, 30 * MIB, "data_config.batch_size"),
        StageUse("shuffle", 80 * MIB, 70 * MIB, "data_config.shuffle_buffer"),
    ],
    trained_rows=4_000,
)


def test_training():
    assert training_summary(TRAINED).splitlines() == [
        "trained   20 steps, 2 epochs, 10,000 rows",
        "speed     2,000 rows/s over 2.0 s, evaluation and saving included",
        "eval      binary_cross_entropy 0.5000  auc 0.7500",
        f"memory    {MEMORY_LINE}",
        "by stage  stage    planned  measured  set by",
        "          process   400MiB    400MiB  memory.limit",
        "          step       40MiB     30MiB  data_config.batch_size",
        "          shuffle    80MiB     70MiB  data_config.shuffle_buffer",
        "          shuffle holds most (70MiB); to take less, lower data_config.shuffle_buffer",
        "run       run (checkpoint step-20)",
    ]


STOPPED = {"restored_step": 10, "stopped_because": "auc got no better in 2 evaluations"}


@pytest.mark.parametrize(
    ("facts", "index", "line"),
    [
        (
            {"shuffle": {"block_coverage": 0.873, "label_autocorrelation": 0.0123}},
            2,
            (
                "shuffle   a batch draws on 87% of the blocks that an ideal shuffle would; "
                "neighbouring labels correlate by 0.012"
            ),
        ),
        ({"exit_code": 130}, -1, "stopped   by a signal; saved. Go on with --continue_train"),
        (STOPPED, 2, "restored  step-10, which eval and predict take"),
        (
            {"restored_step": 10},
            1,
            "restored  step-10, the best one, after a run to its end; eval and predict take it",
        ),
        ({"evaluated_step": None, "trained_rows": 0}, 1, "eval      nothing was evaluated"),
        (
            {"num_bad_rows": 3, "bad_rows": Path("run/bad_rows.jsonl")},
            1,
            "bad rows  3 rows left out as unusable; see run/bad_rows.jsonl",
        ),
    ],
)
def test_what_else_there_is_to_say_of_a_training(facts, index, line):
    assert training_summary(replace(TRAINED, **facts)).splitlines()[index] == line


def test_evaluation():
    evaluation = Evaluation({"auc": 0.75}, {"loss": 0.5}, 2_000)
    result = EvaluationResult(CHECKPOINT, 20, evaluation, 1.5, MEMORY, num_bad_rows=1)

    assert evaluation_summary(result).splitlines() == [
        "checkpoint  run/checkpoints/step-20",
        "rows        2,000 in 1.5 s",
        "bad rows    1 row left out as unusable",
        "eval        loss 0.5000  auc 0.7500",
        f"memory      {MEMORY_LINE}",
    ]


def test_prediction():
    result = PredictionResult(Path("scores.parquet"), CHECKPOINT, 2_000, 1.5, MEMORY)

    assert prediction_summary(result).splitlines() == [
        "checkpoint  run/checkpoints/step-20",
        "rows        2,000 in 1.5 s",
        f"memory      {MEMORY_LINE}",
        "written     scores.parquet",
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
    assert use_lines(stages)[-1] == line
