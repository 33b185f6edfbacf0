"""Batches of evaluation and prediction are cut by cost where the run says so; every row is predicted, in order."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import penstock
from tests.cli.desk import CLICKS, Desk

COSTS = [5, 20, 6, 4, 3, 1]
BY_COST = (
    "batch_size: 4",
    "batch_size: 4\n  batch_cost_size: 10\n  sample_cost_field: cost\n  oversize: drop\n  drop_remainder: true",
)
PREDICT = ("predict", "run.yaml", "--predict_output_path", "scores.parquet", "--predict_input_path")


@pytest.fixture
def cost_desk(desk: Desk) -> Desk:
    """A run whose batches have the rows 0, then 2 and 3, trained on rows with a cost."""
    desk.write_clicks(cost=COSTS)
    desk.write_run(BY_COST)
    return desk


def evaluations(desk: Desk) -> list[int]:
    """The rows of each evaluation of the training run."""
    lines = (desk.folder / "run" / "eval_result.jsonl").read_text().splitlines()
    return [json.loads(line)["rows"] for line in lines]


def test_evaluations_of_training_and_of_the_command_see_the_same_rows(cost_desk: Desk):
    done = cost_desk.penstock("train", "run.yaml")
    assert done.exit_code == 0, done.stderr

    whole = cost_desk.penstock("eval", "run.yaml", "--eval_result_filename", "whole.json")
    one_batch = ("--set", "eval_config.num_steps=1", "--eval_result_filename", "one.json")
    cost_desk.penstock("eval", "run.yaml", *one_batch)

    assert whole.exit_code == 0, whole.stderr
    assert json.loads(Path("run/whole.json").read_text())["rows"] == 3
    assert json.loads(Path("run/one.json").read_text())["rows"] == 1
    assert evaluations(cost_desk)[-1] == 3


def test_every_row_is_predicted_in_its_order(cost_desk: Desk):
    cost_desk.penstock("train", "run.yaml")
    run, table = penstock.load_run("run.yaml"), pq.read_table("clicks.parquet")

    done = cost_desk.penstock(*PREDICT, "clicks.parquet", "--reserved_columns", "user_id")
    scores = pq.read_table("scores.parquet")

    assert done.exit_code == 0, done.stderr
    assert scores["user_id"].to_pylist() == CLICKS["user_id"]
    assert penstock.predict(run, table, reserved_columns=["user_id"]) == scores
    assert penstock.predict(run, table.drop(["cost"]), reserved_columns=["user_id"]) == scores
    assert penstock.predict(run, table.slice(0, 0)).num_rows == 0


def test_the_batches_of_a_prediction_cost_no_more_than_the_limit(
    cost_desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    cost_desk.penstock("train", "run.yaml")
    run, table, sizes = penstock.load_run("run.yaml"), pq.read_table("clicks.parquet"), []
    to_device = penstock.Batch.to

    def watched(batch: penstock.Batch, device: Any) -> penstock.Batch:
        sizes.append(batch.num_rows)
        return to_device(batch, device)

    monkeypatch.setattr(penstock.Batch, "to", watched)

    penstock.predict(run, "clicks.parquet")
    penstock.predict(run, table)
    cost_desk.penstock(*PREDICT, "clicks.parquet", "--batch_size", "5")

    assert (sizes[:4], sizes[4:8], sizes[8:]) == ([1, 1, 2, 2], [1, 1, 2, 2], [5, 1])


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
def test_rows_without_a_cost_are_cut_by_their_number(cost_desk: Desk, suffix: str):
    cost_desk.penstock("train", "run.yaml")
    table, name = pa.table({**CLICKS, "price": [1.0] * 6}), f"new.{suffix}"
    if suffix == "json":
        cost_desk.write(name, "".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif suffix == "csv":
        pyarrow.csv.write_csv(table, name)
    else:
        pq.write_table(table, name)

    done = cost_desk.penstock(*PREDICT, name, "--set", "data_config.with_header=true")

    assert done.exit_code == 0, done.stderr
    assert pq.read_table("scores.parquet").num_rows == 6
    warning = (
        f"{name}: there is no column 'cost', which tells what a row costs; batches are cut by rows, 4 each"
    )
    assert warning in " ".join(done.stderr.split())
    evaluated = cost_desk.penstock(
        "eval", "run.yaml", "--eval_input_path", name, "--set", "data_config.with_header=true"
    )
    assert evaluated.exit_code == 0, evaluated.stderr
    assert warning in " ".join(evaluated.stderr.split())
