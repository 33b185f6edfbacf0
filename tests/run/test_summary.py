"""What train, eval and predict print at their end: five lines, and others where there is something to say."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.config.sizes import GIB, MIB
from penstock.observe.summary import StageUse
from penstock.run.evaluate import EvaluationResult
from penstock.run.predict import PredictionResult
from penstock.run.summary import evaluation_summary, prediction_summary, training_summary
from penstock.run.train import TrainResult
from penstock.runtime.memory import MemoryReport
from penstock.training.evaluate import Evaluation

MEMORY = MemoryReport(
    limit_bytes=GIB,
    start_bytes=400 * MIB,
    peak_bytes=500 * MIB,
    peak_stage="train",
    stage_peaks={"build": 450 * MIB, "train": 500 * MIB},
)
MEMORY_LINE = "peak 500MiB of 1GiB (in train; 400MiB by imports alone)"
CHECKPOINT = Path("run/checkpoints/step-20")
STAGES = [
    StageUse("process", 400 * MIB, 400 * MIB),
    StageUse("step", 40 * MIB, 30 * MIB, "data_config.batch_size"),
    StageUse("shuffle", 80 * MIB, 70 * MIB, "data_config.shuffle_buffer"),
]
TABLE = [
    "stage    planned  measured  set by",
    "process   400MiB    400MiB  memory.limit",
    "step       40MiB     30MiB  data_config.batch_size",
    "shuffle    80MiB     70MiB  data_config.shuffle_buffer",
    "shuffle holds most (70MiB); to take less, lower data_config.shuffle_buffer",
]
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
    stages=STAGES,
    trained_rows=10_000,
    report=Path("run/report.html"),
)
FIVE_LINES = [
    "result  auc 0.7500  binary_cross_entropy 0.5000",
    "speed   5,000 rows/s over 2.0 s; 20 steps, 2 epochs, 10,000 rows",
    f"memory  {MEMORY_LINE}",
    "where   run (checkpoint step-20, report.html)",
    "next    penstock predict run/run.yaml --input FILES --output OUT",
]


def test_training():
    assert training_summary(TRAINED).splitlines() == FIVE_LINES


def test_the_memory_of_stages_comes_before_where_it_is_asked_for():
    assert training_summary(TRAINED, verbose=True).splitlines() == [*TABLE, *FIVE_LINES]


def test_the_attainable_auc_stands_beside_the_one_that_was_reached():
    assert training_summary(TRAINED, 0.8281).splitlines()[0] == (
        "result  auc 0.7500 (0.8281 is attainable)  binary_cross_entropy 0.5000"
    )


ADVICE = "auc was best at the first evaluation: 0.8 at step 5, 0.7 at step 20; train for less"


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        (
            {"exit_code": 130},
            {
                1: "stopped  by a signal; saved",
                -1: "next     penstock train run/run.yaml --continue_train",
            },
        ),
        (
            {"restored_step": 10, "stopped_because": "auc got no better", "evaluated_step": 10},
            {
                0: "result    step 10: auc 0.7500  binary_cross_entropy 0.5000",
                1: "stopped   auc got no better",
                2: "restored  step-10, the best one; eval and predict take it",
            },
        ),
        (
            {"best_step": 10},
            {1: "best    step-10; eval and predict take it with --checkpoint_path best"},
        ),
        ({"evaluated_step": None}, {0: "result  nothing was evaluated"}),
        (
            {"trained_rows": 4_000},
            {1: "speed   2,000 rows/s over 2.0 s; 20 steps, 2 epochs, 10,000 rows in all"},
        ),
        (
            {"trained_rows": 0},
            {1: "speed   nothing was left to train after 20 steps, 2 epochs, 10,000 rows"},
        ),
        (
            {"num_bad_rows": 3, "bad_rows": Path("run/bad_rows.jsonl")},
            {1: "bad rows  3 rows left out as unusable; see run/bad_rows.jsonl"},
        ),
        (
            {"skipped_batches": 1, "overflowed_batches": 2},
            {
                1: "skipped  1 batch whose loss was not finite; see run/nonfinite",
                2: "skipped  2 batches with gradients too large for FP16",
            },
        ),
        (
            {"quality_advice": ADVICE, "advice": "waiting 62% of the time"},
            {
                1: "advice  auc was best at the first evaluation: 0.8 at step 5, 0.7 at step 20;",
                2: "        train for less",
                3: "advice  waiting 62% of the time",
            },
        ),
    ],
)
def test_what_else_there_is_to_say_of_a_training(facts, lines):
    shown = training_summary(replace(TRAINED, **facts)).splitlines()

    assert {index: shown[index] for index in lines} == lines


def test_how_well_rows_were_mixed_is_a_detail_unless_they_are_not():
    mixed = replace(TRAINED, shuffle={"block_coverage": 0.873, "label_autocorrelation": 0.0123})

    assert training_summary(mixed).splitlines() == FIVE_LINES
    assert training_summary(mixed, verbose=True).splitlines()[6:8] == [
        "shuffle  a batch draws on 87% of the blocks that an ideal shuffle would;",
        "         neighbouring labels correlate by 0.012",
    ]
    assert training_summary(replace(TRAINED, shuffle={"block_coverage": 0.4})).splitlines()[1] == (
        "shuffle  a batch draws on 40% of the blocks that an ideal shuffle would"
    )


def test_evaluation():
    evaluation = Evaluation({"auc": 0.75}, {"loss": 0.5}, 2_000)
    result = EvaluationResult(CHECKPOINT, 20, evaluation, 1.6, MEMORY, STAGES, num_bad_rows=1)

    assert evaluation_summary(result).splitlines() == [
        "result    auc 0.7500  loss 0.5000",
        "bad rows  1 row left out as unusable",
        "speed     1,250 rows/s over 1.6 s, loading included; 2,000 rows",
        f"memory    {MEMORY_LINE}",
        "where     run/checkpoints/step-20",
        "next      penstock predict run/run.yaml --input FILES --output OUT",
    ]
    assert evaluation_summary(result, verbose=True).splitlines()[:5] == TABLE
    assert evaluation_summary(result, "best").splitlines()[-2:] == [
        "next      penstock predict run/run.yaml --input FILES --output OUT \\",
        "          --checkpoint_path best",
    ]


def test_prediction():
    result = PredictionResult(Path("scores.parquet"), CHECKPOINT, 2_000, 1.6, MEMORY, STAGES)

    assert prediction_summary(result).splitlines() == [
        "result  2,000 rows scored with run/checkpoints/step-20",
        "speed   1,250 rows/s over 1.6 s, loading included; 2,000 rows",
        f"memory  {MEMORY_LINE}",
        "where   scores.parquet",
        "next    penstock inspect scores.parquet",
    ]
    assert prediction_summary(result, verbose=True).splitlines()[:5] == TABLE
