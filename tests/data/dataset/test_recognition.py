"""What a file looks like from its first bytes."""

import pytest

from penstock.data.sources import Likeness, likeness_of, recognise
from penstock.readers.files import DataFile


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"PAR1\x15\x04", Likeness("ParquetDataset")),
        (b'{"user": 1}\n', Likeness("JsonDataset")),
        (b'\xef\xbb\xbf{"user": 1}\n', Likeness("JsonDataset")),
        (b"[\n  {", Likeness("JsonDataset")),
        (b"user,age\r\nann,31\r\n", Likeness("CsvDataset", ",")),
        (b"ann;31;1,5\n", Likeness("CsvDataset", ";")),
        (b"[user],[age]\n1,2\n", Likeness("CsvDataset", ",")),
    ],
)
def test_what_begins_like_a_format(start, expected):
    assert likeness_of(start) == expected


@pytest.mark.parametrize(
    "start", [b"", b"one word\n", b"\x00\x01,\x02\n", b"PK\x03\x04" + b"\0" * 22 + b"\x0e\0\0\0workbook.xml"]
)
def test_what_is_not_certain_is_nothing(start):
    assert likeness_of(start) is None


def test_a_file_that_cannot_be_read_looks_like_nothing(tmp_path):
    (tmp_path / "torn.gz").write_bytes(b"\x1f\x8bno gzip")

    assert recognise(DataFile(str(tmp_path / "torn.gz"), 9)) is None
    assert recognise(DataFile(str(tmp_path / "missing"), 9)) is None
