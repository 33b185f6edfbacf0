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
