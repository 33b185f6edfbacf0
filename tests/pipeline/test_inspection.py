"""What `inspect` says about data files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import DataError
from penstock.pipeline.inspection import inspect, text_table


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
    assert [(column["column"], column["nulls"]) for column in found["columns"]] == [("id", 4), ("tags", None)]


def test_many_small_row_groups_are_warned_of(parquet_folder):
    assert inspect(parquet_folder).warnings == [
        "3 of 3 row groups decode to less than 512KiB; larger ones (16MiB to 64MiB) read faster"
    ]


def test_for_people(parquet_folder):
    lines = inspect(parquet_folder).as_text().splitlines()

    assert lines[:4] == ["Parquet files", "  files: 2", "  rows: 8", "  row groups: 3"]
    assert [line.split() for line in lines[8:10]] == [["column", "type", "nulls"], ["id", "int64", "4"]]
    assert lines[-1].startswith("warning: 3 of 3 row groups")


def test_csv_by_its_first_line(tmp_path):
    (tmp_path / "a.csv").write_text("user,price\n1,2.5\n")

    found = inspect(tmp_path / "a.csv").as_dict()

    assert found["kind"] == "text files (their first line taken for names)"
    assert found["columns"] == [{"column": "user", "type": "int64"}, {"column": "price", "type": "double"}]


def test_a_damaged_file_is_told_in_the_words_of_the_reader(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no Parquet" * 10)

    with pytest.raises(
        DataError, match=r"a.parquet: is not a whole Parquet file: .*; write it again, or leave it out$"
    ):
        inspect(tmp_path / "a.parquet")


def test_a_table_has_columns_of_the_width_they_need():
    rows = [{"step": 10, "auc": 0.7123456789}, {"step": 1000, "auc": None}]

    assert text_table(rows) == ["  step  auc", "  10    0.712346", "  1000  ?"]
