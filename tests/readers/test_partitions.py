"""Folders as Hive and Spark write them: a part of the columns stands in the names of folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.config.errors import DataError
from penstock.readers.scan import BlockStream
from penstock.readers.sections import ReadingSection
from penstock.readers.tfrecord_write import write_tfrecord
from penstock.runtime.budget import Share
from tests.readers.samples import open_path, scan_path, table_from


def _write_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(f'{{"n": {n}}}\n' for n in table["n"].to_pylist()))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    ".parquet": pq.write_table,
    ".csv": pyarrow.csv.write_csv,
    ".feather": lambda table, path: pyarrow.feather.write_feather(table, str(path)),
    ".jsonl": _write_json,
    ".tfrecord": lambda table, path: write_tfrecord(path, table),
}


@pytest.fixture(params=WRITERS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two days, two countries, two rows in each file, and what Spark leaves beside them."""
    days = {"2024-01-01": ("de", "__HIVE_DEFAULT_PARTITION__"), "2024-01-02": ("de", "a%2Fb")}
    n = 0
    for day, countries in days.items():
        for country in countries:
            inner = tmp_path / "clicks" / f"dt={day}" / "hour=7" / f"country={country}"
            inner.mkdir(parents=True)
            WRITERS[request.param](pa.table({"n": [n, n + 1]}), inner / f"part-0{request.param}")
            n += 2
    (tmp_path / "clicks" / "dt=2024-01-03").mkdir()
    (tmp_path / "clicks" / "_SUCCESS").touch()
    return tmp_path / "clicks"


def test_folders_are_columns_of_every_format(folder: Path):
    found = table_from(open_path(folder)).sort_by("n")

    assert found.to_pydict() == {
        "n": list(range(8)),
        "dt": ["2024-01-01"] * 4 + ["2024-01-02"] * 4,
        "hour": [7] * 8,
        "country": ["de", "de", None, None, "de", "de", "a/b", "a/b"],
    }
    assert found.schema.field("hour").type == pa.int64()


def test_only_what_is_asked_for_is_read(folder: Path):
    assert table_from(open_path(folder, columns=["n"])).column_names == ["n"]
    assert table_from(open_path(folder, columns=["dt", "n"])).column_names == ["dt", "n"]
    assert table_from(open_path(folder, columns=["hour"])).to_pydict() == {"hour": [7] * 8}
    with pytest.raises(DataError, match="there is no column 'hours'"):
        open_path(folder, columns=["n", "hours", "dt"])


def test_order_and_positions_are_those_of_the_files(folder: Path):
    whole, part = open_path(folder, seed=3), open_path(folder, seed=3)
    expected = table_from(whole).to_pylist()
    first = next(iter(part))

    assert first.num_rows + table_from(part).num_rows == len(expected) == 8
    assert expected != table_from(open_path(folder)).to_pylist()


def test_a_column_of_the_files_wins_and_declared_types_hold(tmp_path: Path):
    inner = tmp_path / "n=5" / "day=1"
    inner.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1, 2]}), inner / "a.parquet")

    assert table_from(open_path(tmp_path)).to_pydict() == {"n": [1, 2], "day": [1, 1]}
    assert table_from(open_path(tmp_path, columns=["n", "day"])).to_pydict() == {"n": [1, 2], "day": [1, 1]}
    declared = ReadingSection(input_fields_str="day:STRING")
    assert table_from(open_path(tmp_path, declared, ["day"])).to_pydict() == {"day": ["1", "1"]}


def test_codes_with_zeros_in_front_stay_strings(tmp_path: Path):
    for month in ("01", "12"):
        (tmp_path / f"month={month}").mkdir()
        (tmp_path / f"month={month}" / "a.csv").write_text("n\n1\n")

    assert [row["month"] for row in penstock.read_csv(tmp_path)] == ["01", "12"]


def test_constants_count_as_bytes(tmp_path: Path):
    inner = tmp_path / f"long={'x' * 96}"
    inner.mkdir()
    pq.write_table(pa.table({"n": list(range(20_000))}), inner / "a.parquet", row_group_size=1000)
    plain, found = scan_path(tmp_path, columns=["n"]), scan_path(tmp_path)

    assert found.row_bytes == plain.row_bytes + 100
    share = Share("reading", found.sizes.min_bytes)
    batches = list(BlockStream(found, share))
    assert sum(batch.num_rows for batch in batches) == 20_000
    assert max(batch.nbytes for batch in batches) <= found.sizes.block_bytes + 8 * 1000
    assert 0 < share.peak_bytes <= found.sizes.min_bytes
    assert share.held_bytes == 0
