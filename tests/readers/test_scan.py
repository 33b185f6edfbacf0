"""What is known of files before anybody decides how many bytes reading may take."""

from pathlib import Path

import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import DataFile
from penstock.readers.scan import dataset_type_of
from penstock.readers.sections import ReadingSection
from penstock.runtime.world import max_decode_threads
from tests.readers.samples import CSV_WITH_HEADER, open_path, scan_path, write_csv, write_parquet


def test_parquet_tells_columns_and_rows(tmp_path: Path) -> None:
    found = scan_path(write_parquet(tmp_path, [5, 3]), columns=["text", "number"])

    assert found.columns.names == ["text", "number"]
    assert found.num_rows == 8
    assert found.row_bytes == 8 + 8 + 4 + len("row 1") + 1  # a bit per value tells nulls
    assert found.sizes.min_bytes <= found.sizes.ample_bytes == MIB


def test_csv_tells_columns_and_the_size_of_rows(tmp_path: Path) -> None:
    found = scan_path(write_csv(tmp_path, [5, 3]), CSV_WITH_HEADER)

    assert found.columns.names == ["number", "text"]
    assert found.num_rows == 8
    assert found.row_bytes == 8 + 8 + 4 + len("row 1")
    assert found.sizes.block_bytes == 5 * found.row_bytes
    assert 4 * KIB < found.sizes.min_bytes < 64 * KIB  # as much as a few KiB of text need
    assert found.sizes.decoder_bytes == found.sizes.min_bytes + found.sizes.block_bytes
    assert found.sizes.ample_bytes == max_decode_threads() * found.sizes.decoder_bytes


def test_a_declared_type_counts_more_than_the_suffix_and_unknown_and_mixed_ones_are_refused() -> None:
    reading = ReadingSection(dataset_type="CsvDataset")

    assert dataset_type_of(reading, [DataFile("a.parquet", 1)]) == "CsvDataset"
    with pytest.raises(DataError, match=r"a.bin: the suffix does not tell the format; set data_config"):
        dataset_type_of(ReadingSection(), [DataFile("a.bin", 1)])
    with pytest.raises(DataError, match=r"a.csv and b.parquet are of different formats"):
        dataset_type_of(ReadingSection(), [DataFile("a.csv", 1), DataFile("b.parquet", 1)])


def test_no_columns_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column is wanted; name features or label_fields"):
        open_path(write_parquet(tmp_path, [3]), columns=[])


def test_hdf5_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "train.h5").write_bytes(b"\x89HDF\r\n")
    (tmp_path / "manifest.json").write_text("{}")

    with pytest.raises(DataError, match=r"does not read it; merge to target npy, parquet or ipc"):
        scan_path(tmp_path, ReadingSection(dataset_type="NumpyDataset"))
