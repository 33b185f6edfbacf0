"""Rows that cannot be used, in a whole training run."""

import json
import shutil

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.end_to_end.conftest import Workplace, write_run
from tests.end_to_end.runs import losses

QUARANTINE = ["--set", "data_config.bad_rows=quarantine"]


@pytest.fixture
def place(sample_clicks, tmp_path):
    """A run over Parquet files, of which the second has two bad ids and a bad label."""
    data = tmp_path / "clicks"
    shutil.copytree(sample_clicks, data)
    path = data / "train" / "part-00001.parquet"
    table = pq.read_table(path)
    users, clicks = table["user_id"].to_pylist(), table["click"].to_pylist()
    users[7], users[8], clicks[100] = 99_999, -1, 5
    for name, values in (("user_id", users), ("click", clicks)):
        index = table.schema.get_field_index(name)
        table = table.set_column(
            index, table.schema.field(index), pa.array(values, table.schema.types[index])
        )
    pq.write_table(table, path, row_group_size=2_000)
    return Workplace(tmp_path, data, write_run(tmp_path / "run.yaml", data))


def bad_rows(place):
    lines = (place.folder / "run" / "data" / "train" / "bad_rows.jsonl").read_text().splitlines()
    return sorted((entry["row"], entry["column"], entry["value"]) for entry in map(json.loads, lines))


def test_bad_rows_are_written_aside_once_by_training_and_by_evaluation(place):
    path = "clicks/train/part-00001.parquet"
    done = place.penstock("train", "run.yaml", *QUARANTINE)
    evaluated = place.penstock(
        "eval", "run.yaml", *QUARANTINE, "--eval_input_path", path, "--eval_result_filename", "result.json"
    )

    assert (done.code, evaluated.code) == (0, 0), done.err + evaluated.err
    assert bad_rows(place) == [(7, "user_id", 99_999), (8, "user_id", -1), (100, "click", 5)]
    last = json.loads((place.folder / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert last["rows"] == 2 * (18_000 - 3)
    # Ids that the table does not have leave nothing out in an evaluation: they are counted.
    assert evaluated.out.splitlines()[1:3] == [
        "bad rows  1 row left out as unusable; see run/data/eval/bad_rows.jsonl",
        "unknown   user_id <0.1% outside 0 to 9,999",
    ]
    result = json.loads((place.folder / "run" / "result.json").read_text())
    assert (result["rows"], result["num_bad_rows"]) == (6_000 - 1, 1)
    assert result["value_counts"]["user_id"]["unknown"] == 2
    assert result["bad_rows"] == "run/data/eval/bad_rows.jsonl"


def test_records_of_csv_that_cannot_be_read(sample_clicks, tmp_path):
    columns = ["user_id", "item_id", "category", "age", "price", "ctr_7d", "days_since_visit", "click"]
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        table = pq.read_table(sample_clicks / split).select(columns)
        pyarrow.csv.write_csv(table, tmp_path / split / "a.csv")
    path = tmp_path / "train" / "a.csv"
    records = path.read_text().splitlines()
    records[11], records[21] = "x" + records[11], "1,2"
    path.write_text("\n".join(records) + "\n")
    place = Workplace(tmp_path, tmp_path, write_run(tmp_path / "run.yaml", tmp_path))
    done = place.penstock(
        "train", "run.yaml", *QUARANTINE, "--train_input_path", "train/a.csv", "--eval_input_path", "test/a.csv",
        "--set", "data_config.with_header=true", "--set", "data_config.input_fields_str=user_id:BIGINT",
    )  # fmt: skip

    assert done.code == 0, done.err
    assert [entry[:2] for entry in bad_rows(place)] == [(10, "user_id"), (20, None)]


@pytest.mark.slow
def test_workers_set_the_same_rows_aside(place):
    plain = place.penstock("train", "run.yaml", *QUARANTINE)
    expected, found = losses(place), bad_rows(place)
    shutil.rmtree(place.folder / "run")
    done = place.penstock("train", "run.yaml", *QUARANTINE, "--set", "data_config.num_workers=2")

    assert plain.code == done.code == 0, done.err
    assert (losses(place), bad_rows(place)) == (expected, found)
