"""Choosing the reader, and problems that are found before any reader is asked."""

from pathlib import Path

import pytest

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.scan import dataset_type_of
from penstock.readers.sections import ReadingSection
from tests.readers.samples import open_path, write_parquet


@pytest.mark.parametrize(
    ("name", "dataset_type"),
    [("a.parquet", "ParquetDataset"), ("a.csv.gz", "CsvDataset"), ("a.tfrecord", "TFRecordDataset")],
)
def test_the_type_follows_from_the_suffix(name: str, dataset_type: str) -> None:
    assert dataset_type_of(ReadingSection(), [DataFile(name, 1)]) == dataset_type


def test_a_written_type_counts_more_than_the_suffix() -> None:
    reading = ReadingSection(dataset_type="CsvDataset")

    assert dataset_type_of(reading, [DataFile("a.parquet", 1)]) == "CsvDataset"


def test_unknown_and_mixed_suffixes() -> None:
    with pytest.raises(DataError, match=r"a.bin: the suffix does not tell the format; set data_config"):
        dataset_type_of(ReadingSection(), [DataFile("a.bin", 1)])
    with pytest.raises(DataError, match=r"a.csv and b.parquet are of different formats"):
        dataset_type_of(ReadingSection(), [DataFile("a.csv", 1), DataFile("b.parquet", 1)])


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()

    with pytest.raises(DataError, match=f"{name}: is empty \\(0 bytes\\); write it again or leave it out"):
        open_path(tmp_path / name)


def test_a_tfrecord_file_without_bytes_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").touch()

    assert list(open_path(tmp_path / "a.tfrecord")) == []


def test_no_columns_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column is wanted; name features or label_fields"):
        open_path(write_parquet(tmp_path, [3]), columns=[])
