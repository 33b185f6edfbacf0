"""`penstock eval` and `penstock predict`; tests/library writes Parquet, CSV and folders."""

import json

import pyarrow.parquet as pq
import pytest

from tests.cli.desk import CLICKS, Desk


@pytest.mark.parametrize("which", ["best", "run/checkpoints/step-2"])
def test_the_metrics_of_a_checkpoint_are_printed_and_written_where_asked_for(trained_desk: Desk, which: str):
    trained = json.loads((trained_desk.folder / "run" / "eval_result.jsonl").read_text())
    before = trained_desk.content()

    done = trained_desk.penstock("eval", "run.yaml", "--checkpoint-path", which)

    printed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert done.exit_code == 0, done.stderr
    assert printed["checkpoint"] == "run/checkpoints/step-2"
    loss, auc = trained["losses"]["binary_cross_entropy"], trained["metrics"]["auc"]
    assert printed["eval"] == f"binary_cross_entropy {loss:.4f}  auc {auc:.4f}"
    assert trained_desk.content() == before

    trained_desk.penstock("eval", "run.yaml", "--eval_result_filename", "result.json")
    result = json.loads((trained_desk.folder / "run" / "result.json").read_text())
    assert (result["step"], result["rows"], result["checkpoint"]) == (2, 6, "run/checkpoints/step-2")
    assert (result["num_bad_rows"], result["bad_rows"]) == (0, None)


PREDICT = ("predict", "run.yaml", "--predict_input_path", "clicks.parquet", "--predict_output_path")


def test_columns_that_are_kept_and_those_that_are_written_without_labels(trained_desk: Desk):
    trained_desk.write_clicks(click=None)

    done = trained_desk.penstock(
        *PREDICT, "scores.parquet", "--reserved_columns", " item_id, price,", "--output_columns", "probs"
    )

    assert done.exit_code == 0, done.stderr
    scores = pq.read_table("scores.parquet")
    assert scores.schema.names == ["item_id", "price", "probs"]
    assert scores["item_id"].to_pylist() == CLICKS["item_id"]
