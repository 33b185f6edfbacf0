"""What `inspect` says about data files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import ConfigError
from penstock.observe.inspect import Inspection, LookOptions, inspect, text_table
from penstock.prep import profile


@pytest.fixture
def parquet_folder(tmp_path):
    """Two files, one with nulls and a list column without statistics of its own."""
    folder = tmp_path / "train"
    folder.mkdir()
    table = pa.table({"id": [1, None, 3, None], "tags": [[1], [2, 3], None, []]})
    pq.write_table(table, folder / "a.parquet", row_group_size=2)
    pq.write_table(table, folder / "b.parquet")
    return folder


def test_a_folder_of_parquet_files_is_one_data_set(parquet_folder):
    found = inspect(parquet_folder).as_dict()

    assert (found["kind"], found["files"], found["rows"], found["row_groups"]) == ("Parquet files", 2, 8, 3)
    assert found["bytes_on_disk"] == sum(file.stat().st_size for file in parquet_folder.iterdir())
    assert [(column["column"], column["nulls"]) for column in found["columns"]] == [("id", 4), ("tags", 2)]
    assert found["warnings"] == []
    column_id, tags = found["columns"]
    assert (column_id["distinct"], column_id["distinct_is"]) == (2, "exactly")
    assert (column_id["min"], column_id["max"], column_id["mean_length"]) == (1, 3, None)
    assert (tags["distinct"], tags["min"], tags["max"], tags["mean_length"]) == (3, 1, 3, 1.0)


def test_of_large_data_some_rows_are_looked_at_unless_all_are_asked_for(parquet_folder, monkeypatch):
    monkeypatch.setattr(profile, "WHOLE_BYTES", 1)
    monkeypatch.setattr(profile, "_MAX_PIECE_ROWS", 1)
    monkeypatch.setattr(profile, "_NUM_PIECES", 2)

    some = inspect(parquet_folder)
    whole = inspect(parquet_folder, LookOptions(full=True, plain=True))

    assert (some.facts["rows_looked_at"], some.facts["part_looked_at"]) == (2, 0.25)
    assert some.notes == [
        "from rows at 2 places (nulls, min and max of numbers: all rows, by the footers); --full looks at all rows"
    ]
    assert [row["distinct"] for row in some.shown_table or []] == [">=1", ">=1"]
    assert next((row["nulls"], row["distinct_is"], row["max"]) for row in some.table) == (4, "at least", 3)
    assert "rows_looked_at" not in whole.facts
    assert [row["distinct_is"] for row in whole.table] == ["exactly", "exactly"]


def test_everything_goes_into_json(tmp_path):
    table = pa.table(
        {
            "when": pa.array([0, 10**12], pa.timestamp("us")),
            "day": pa.array([0, 1], pa.date32()),
            "price": pa.array([1, 2], pa.int64()).cast(pa.decimal128(21, 2)),
            "odd": [float("inf"), 1.0],
            "raw": pa.array([b"\xff", b"a"]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")

    found = json.loads(json.dumps(inspect(tmp_path).as_dict(), allow_nan=False))

    extremes = {column["column"]: (column["min"], column["max"]) for column in found["columns"]}
    assert extremes["when"] == ("1970-01-01T00:00:00", "1970-01-12T13:46:40")
    assert extremes["day"] == ("1970-01-01", "1970-01-02")
    assert extremes["price"] == ("1.00", "2.00")
    assert extremes["odd"] == (1.0, "inf")


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"delimiter": "|"}, "--delimiter has no effect: a.parquet is not CSV"),
        ({"fields": "a"}, "--fields has 'a'; expected name:TYPE, separated by ';'"),
        (
            {"dataset_type": "CsvDatset"},
            "--dataset-type: there is no 'CsvDatset'; did you mean 'CsvDataset'?",
        ),
    ],
)
def test_mistakes_in_how_to_read(parquet_folder, reading, message):
    with pytest.raises(ConfigError) as caught:
        inspect(parquet_folder, LookOptions(reading=reading))

    assert str(caught.value).replace(f"{parquet_folder}/", "") == message


def test_a_table_is_narrowed_to_the_terminal():
    rows = [{"name": "a" * 40, "value": "b" * 15, "rest": "c" * 20}]

    assert text_table(rows, width=40) == [
        "  name                   value",
        f"  {'a' * 20}…  {'b' * 15}",
        "  (no room for: rest; see --json)",
    ]
    text = Inspection("files", {}, warnings=["word " * 12]).as_text(width=40)

    assert max(len(line) for line in text.splitlines()) <= 40
