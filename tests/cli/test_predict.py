"""`penstock predict`; tests/library writes Parquet, CSV and folders."""

import pyarrow.parquet as pq

from tests.cli.desk import CLICKS, Desk

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
