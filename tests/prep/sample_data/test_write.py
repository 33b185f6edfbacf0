import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.sample_data.blocks import read_summary
from penstock.prep.sample_data.write import split_rows, write_sample_data


def test_files_and_row_groups_have_the_sizes_asked_for(tmp_path):
    called: list[int] = []
    sizes = {"num_files": 2, "row_group_rows": 200}
    summary = write_sample_data("clicks", 1_000, tmp_path / "out", **sizes, on_rows=called.append)

    assert called == [200, 200, 50] * 2 + [50, 50]
    assert summary.splits["train"].files == ("train/part-00000.parquet", "train/part-00001.parquet")
    metadata = pq.read_metadata(tmp_path / "out/train/part-00000.parquet")
    assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [200, 200, 50]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["sample.json", "test", "train"]


def test_csv_holds_the_same_rows_as_text(tmp_path):
    write_sample_data("clicks", 2_000, tmp_path / "csv", format="csv", num_files=1, row_group_rows=300)
    write_sample_data("clicks", 2_000, tmp_path / "parquet", num_files=1)
    options = pyarrow.csv.ConvertOptions(column_types={"tags": pa.string(), "click_seq": pa.string()})
    text = pyarrow.csv.read_csv(tmp_path / "csv/train/part-00000.csv", convert_options=options)
    rows = pq.read_table(tmp_path / "parquet/train")

    for name in ("user_id", "city", "age", "click", "cost"):
        assert text[name].to_pylist() == rows[name].to_pylist()
    for name, separator in (("tags", "\x1d"), ("click_seq", ";")):
        joined = [separator.join(map(str, values)) for values in rows[name].to_pylist()]
        assert text[name].fill_null("").to_pylist() == joined
    first_interests = dict(pair.split(":") for pair in text["interests"][0].as_py().split("\x1d"))
    assert {key: pytest.approx(float(weight)) for key, weight in first_interests.items()} == dict(
        rows["interests"][0].as_py()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "parket"}, "unknown format of sample data 'parket'; did you mean 'parquet'?"),
        ({"num_rows": 0}, "num_rows is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
    ],
)
def test_wrong_arguments_give_one_line_and_write_nothing(arguments, message, tmp_path):
    with pytest.raises(ConfigError) as error:
        write_sample_data(**({"kind": "clicks", "num_rows": 100, "out": tmp_path / "out"} | arguments))

    assert str(error.value) == message
    assert list(tmp_path.iterdir()) == []


def test_sample_data_is_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    write_sample_data("clicks", 100, tmp_path / "out", num_files=3)
    write_sample_data("criteo", 100, tmp_path / "out", num_files=1, overwrite=True)
    assert read_summary(tmp_path / "out").kind == "criteo"
    assert len(list((tmp_path / "out").rglob("part-*"))) == 2


def test_an_interrupted_call_leaves_nothing(tmp_path):
    def interrupt(num_rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_sample_data("clicks", 100, tmp_path / "out", on_rows=interrupt)

    assert list(tmp_path.iterdir()) == []


def test_a_summary_that_is_missing_or_broken_is_named(tmp_path):
    with pytest.raises(DataError, match=r"has no sample.json; it was not written by penstock sample-data$"):
        read_summary(tmp_path)
    (tmp_path / "sample.json").write_text('{"splits": 3}')
    with pytest.raises(DataError, match=r"sample\.json: is not a summary of sample data"):
        read_summary(tmp_path)


@pytest.mark.parametrize(
    ("num_rows", "splits", "problem"),
    [
        (
            3,
            {"train": 0.9, "test": 0.1},
            r"^3 rows leave split 'test' \(0.1 of them\) empty; ask for more rows$",
        ),
        (100, {}, "must be positive fractions that add up to 1"),
        (100, {"train": 1.5, "test": -0.5}, "must be positive fractions that add up to 1"),
        (100, {"a/b": 1.0}, "is not the name of a folder"),
    ],
)
def test_splits_that_cannot_be(num_rows, splits, problem):
    with pytest.raises(ConfigError, match=problem):
        split_rows(num_rows, splits)


def test_no_file_is_empty(tmp_path):
    summary = write_sample_data("criteo", 10, tmp_path / "out", num_files=2, format="csv")

    assert {name: split.files for name, split in summary.splits.items()} == {
        "train": ("train/part-00000.csv", "train/part-00001.csv"),
        "test": ("test/part-00000.csv",),
    }


PEAK_OF_TWO_SIZES = """
import sys
from pathlib import Path
from penstock.prep.sample_data.write import write_sample_data
from penstock.runtime.memory import high_water_bytes

# Of this process alone: what getrusage tells begins with the peak of the process that started it.
def peak_mib():
    return high_water_bytes() / 2**20

before = peak_mib()
write_sample_data("clicks", 80_000, Path(sys.argv[1]) / "small")
small = peak_mib()
write_sample_data("clicks", 320_000, Path(sys.argv[1]) / "large")
print(small - before, peak_mib() - small)
"""


@pytest.mark.slow
def test_memory_is_bounded_whatever_the_number_of_rows(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", PEAK_OF_TWO_SIZES, str(tmp_path)], capture_output=True, text=True, check=True
    )

    first_mib, more_mib = map(float, run.stdout.split())
    assert first_mib < 250
    assert more_mib < 50
