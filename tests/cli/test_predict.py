"""`penstock predict`: columns, rows and files as asked for."""

import pyarrow.csv
import pyarrow.parquet as pq

from tests.cli.desk import CLICKS, Desk


def predicted(desk: Desk, output: str, *words: str) -> None:
    done = desk.penstock(
        "predict",
        "run.yaml",
        "--predict_input_path",
        "clicks.parquet",
        "--predict_output_path",
        output,
        *words,
    )
    assert done.exit_code == 0, done.stderr


def test_one_parquet_file(trained_desk: Desk):
    predicted(trained_desk, "scores.parquet", "--reserved_columns", " item_id, click,")

    scores = pq.read_table("scores.parquet")
    assert scores.schema.names == ["item_id", "click", "logits", "probs"]
    assert scores["item_id"].to_pylist() == CLICKS["item_id"]


def test_one_csv_file(trained_desk: Desk):
    predicted(trained_desk, "scores.csv", "--output_columns", "probs")

    scores = pyarrow.csv.read_csv("scores.csv")
    assert scores.schema.names == ["probs"]
    assert scores.num_rows == 6


def test_a_folder_of_parts(trained_desk: Desk):
    predicted(trained_desk, "scores")

    assert [path.name for path in (trained_desk.folder / "scores").iterdir()] == ["part-00000.parquet"]


def test_the_first_rows_whatever_the_batch(trained_desk: Desk):
    words = ["--limit", "5", "--batch_size", "4", "--reserved_columns", "user_id"]
    predicted(trained_desk, "some.parquet", *words)

    assert pq.read_table("some.parquet")["user_id"].to_pylist() == [1, 2, 3, 4, 5]


def test_labels_are_not_needed(trained_desk: Desk):
    trained_desk.write_clicks(click=None)

    predicted(trained_desk, "scores.parquet")

    assert pq.read_table("scores.parquet").num_rows == 6
