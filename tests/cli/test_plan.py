"""`penstock plan` and `penstock check`: what is wrong with columns, both refuse with the same line."""

import pytest

from tests.cli.desk import CLICKS, Change, Desk

TEXTS = list("abcdef")
BY_COST = ("batch_size: 4", "batch_size: 4\n  batch_cost_size: 10\n  sample_cost_field: cost")
BUCKETED = ("batch_size: 4", "batch_size: 4\n  shuffle: true\n  bucket_by: item_id")
WEIGHTED = ("label_fields: [click]", "label_fields: [click]\n  sample_weight_fields: [weight]")

NO_LENGTH = "column 'item_id': is of type int64; only lists and texts of several steps have a length"


@pytest.mark.parametrize("command", ["plan", "check"])
@pytest.mark.parametrize(
    ("change", "columns", "line"),
    [
        (WEIGHTED, {"weight": TEXTS}, "column 'weight': is a string; a sample weight is a number"),
        (
            BY_COST,
            {"cost": TEXTS},
            "column 'cost': is of type string; a cost is a number (data_config.sample_cost_field)",
        ),
        (BUCKETED, {}, f"{NO_LENGTH} (data_config.bucket_by)"),
    ],
    ids=["sample weight", "cost", "bucket_by"],
)
def test_a_column_of_a_type_that_its_use_does_not_allow(
    desk: Desk, command: str, change: Change, columns: dict[str, list[str]], line: str
):
    desk.write_run(change)
    desk.write_clicks(**columns)

    done = desk.penstock(command, "run.yaml")

    assert done.stderr.splitlines()[-1] == f"error: clicks.parquet: {line}"
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("sizes", "setting"),
    [
        ("batch_size: 40000", "data_config.batch_size"),  # as many rows are scored, which keeps no gradients
        ("batch_size: 40000\n  eval_batch_size: 400000", "data_config.eval_batch_size"),
    ],
)
def test_steps_of_training_and_of_evaluations_take_turns_and_the_larger_is_planned(
    desk: Desk, sizes: str, setting: str
):
    desk.write_run(("batch_size: 4", sizes))

    [line] = [line for line in desk.penstock("plan", "run.yaml").stdout.splitlines() if " step " in line]

    assert line.split()[-1] == setting


def test_scoring_is_refused_for_its_own_batches_alone(desk: Desk):
    """Training takes batches that no limit allows; the same run scores."""
    desk.write_run(("batch_size: 4", "batch_size: 4\n  eval_batch_size: 6"))
    assert desk.penstock("train", "run.yaml").exit_code == 0
    desk.write_run(("batch_size: 4", "batch_size: 400000000\n  eval_batch_size: 6"))

    evaluated = desk.penstock("eval", "run.yaml")

    assert (evaluated.exit_code, desk.penstock("plan", "run.yaml").exit_code) == (0, 1), evaluated.stderr


def test_a_worker_without_a_batch_gets_no_bytes(desk: Desk):
    desk.write_run(("batch_size: 4", "batch_size: 6\n  num_workers: 2"))

    lines = desk.penstock("plan", "run.yaml").stdout.splitlines()

    assert "workers  1" in lines


def test_only_training_data_need_a_cost(desk: Desk):
    """Rows that are scored are cut by their number where they have none."""
    desk.write_run(BY_COST, ("eval_input_path: clicks.parquet", "eval_input_path: plain.parquet"))
    desk.write_clicks(cost=[1] * 6)
    desk.write_clicks("plain.parquet")

    trained = desk.penstock("train", "run.yaml")
    predicted = desk.penstock(
        "predict", "run.yaml", "--predict_input_path", "plain.parquet", "--predict_output_path", "scores.csv"
    )

    assert (trained.exit_code, predicted.exit_code) == (0, 0), trained.stderr + predicted.stderr
    assert len((desk.folder / "scores.csv").read_text().splitlines()) == 1 + len(CLICKS["click"])
