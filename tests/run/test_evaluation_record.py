"""Evaluations as lines of eval_result.jsonl, and back."""

import json
import math

from penstock.runtime.journal import Journal
from penstock.training.evaluate import Evaluation
from penstock.training.progress import TrainingProgress

WITHOUT_A_POSITIVE = Evaluation(
    metrics={"auc": math.nan, "accuracy": 0.75},
    losses={"binary_cross_entropy": 0.5},
    rows=200,
    remarks={"auc": "no positive rows"},
)


def test_a_record_says_what_was_found_and_what_there_is_to_say_about_it():
    record = WITHOUT_A_POSITIVE.as_record(TrainingProgress(step=20, epoch=1), 0.12345, saved=True)

    assert {name: record[name] for name in ("step", "epoch", "rows", "seconds", "checkpoint")} == {
        "step": 20,
        "epoch": 1,
        "rows": 200,
        "seconds": 0.123,
        "checkpoint": "step-20",
    }
    assert record["remarks"] == {"auc": "no positive rows"}


def test_what_there_is_nothing_of_has_no_key():
    record = Evaluation({}, {}, 200).as_record(TrainingProgress(step=20), 0.1, saved=False)

    assert record["checkpoint"] is None
    assert {"calibration_bins", "group_auc", "remarks"}.isdisjoint(record)


def test_an_evaluation_is_recalled_with_the_reason_for_a_missing_value(tmp_path):
    journal = Journal(tmp_path / "eval_result.jsonl")
    for step in (10, 20):
        journal.write(WITHOUT_A_POSITIVE.as_record(TrainingProgress(step=step), 0.1, saved=True))

    found = Evaluation.recalled(journal.read(), 20)

    assert found is not None
    assert (math.isnan(found.metrics["auc"]), found.metrics["accuracy"]) == (True, 0.75)
    assert (found.losses, found.rows) == ({"binary_cross_entropy": 0.5}, 200)
    assert found.remarks == {"auc": "no positive rows"}
    assert Evaluation.recalled(journal.read(), 30) is None


def test_a_line_of_an_earlier_version_has_no_remarks():
    line = json.loads('{"step": 10, "metrics": {"auc": null}, "losses": {}, "rows": 2}')

    found = Evaluation.recalled([line], 10)

    assert found is not None
    assert found.remarks == {}
