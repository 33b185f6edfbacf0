"""The index of records: counts that equal what is read, entering anywhere, and being kept beside the run."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers import indexed_files
from penstock.readers.csv import CsvForm, CsvRecords, ScannedCsv, parse_costs
from penstock.readers.files import DataFile, list_files
from penstock.readers.indexed_files import RecordIndex, index_text, scan_text
from penstock.readers.scan import BlockStream, ReadRequest, ScannedFiles, scan_files
from penstock.runtime.budget import Share
from tests.readers.samples import CSV_WITH_HEADER, flat, write_csv

COMMAS = CsvRecords(",")


CELLS = st.sampled_from(["", "a", "bc", '"q"', '"x\ny"', '"x\r\ny"', '"d""d"', '5" disk', '"a"b', '""', "é"])
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"])


@st.composite
def csv_texts(draw: st.DrawFn) -> str:
    """Records of two cells with any line ends, the last one with or without."""
    rows = draw(st.lists(st.tuples(CELLS, CELLS, LINE_ENDS), max_size=40))
    text = draw(st.sampled_from(["", "\n", "\r\n"])) + "".join(f"{a},{b}{end}" for a, b, end in rows)
    return text.rstrip("\r\n") if draw(st.booleans()) else text


def _file(path: Path, text: bytes) -> DataFile:
    path.write_bytes(text)
    return DataFile(str(path), len(text))


def _scan_of_chunks(file: DataFile, chunk_bytes: int) -> ScannedFiles:
    """Two columns of text, with chunks much smaller than usual."""
    framing = CsvRecords(",")
    index = RecordIndex.of(0, scan_text(file, 0, framing, chunk_bytes))
    columns = pa.schema([("a", pa.string()), ("b", pa.string())])
    forms = (CsvForm(file.path, ("a", "b"), 0, ","),)
    return ScannedCsv(
        files=(file,),
        columns=columns,
        indexes=(index,),
        framing=framing,
        sampled_row_bytes=1,
        text_row_bytes=1,
        costs=parse_costs(forms, 2),
        quarantine=None,
        forms=forms,
    )


@settings(max_examples=60)
@given(text=csv_texts(), chunk_bytes=st.integers(1, 60))
def test_counts_equal_what_arrow_reads(tmp_path: Path, text: str, chunk_bytes: int) -> None:
    file = _file(tmp_path / "a.csv", text.encode())
    found = _scan_of_chunks(file, chunk_bytes)
    expected = []
    if text.strip("\r\n"):
        whole = pa.csv.read_csv(
            pa.BufferReader(text.encode()),
            read_options=pa.csv.ReadOptions(column_names=["a", "b"], block_size=1 << 20),
            convert_options=pa.csv.ConvertOptions(column_types={"a": pa.string(), "b": pa.string()}),
        )
        expected = whole.to_pylist()
    reader = BlockStream(found, Share("reading", MIB))
    read = pa.Table.from_batches(reader, reader.schema)

    assert found.num_rows == len(expected)
    assert read.drop_columns("__row__").to_pylist() == expected
    assert read.column("__row__").to_pylist() == list(range(len(expected)))


@settings(max_examples=60)
@given(text=csv_texts(), chunk_bytes=st.integers(1, 200), share_bytes=st.sampled_from([1000, 3000, MIB]))
def test_any_rows_of_any_block_equal_a_slice_of_all(tmp_path, text, chunk_bytes, share_bytes):
    found = _scan_of_chunks(_file(tmp_path / "a.csv", text.encode()), chunk_bytes)
    decoder = found.decoder(Share("reading", share_bytes))
    for block, num_rows in enumerate(found.blocks.num_rows.tolist()):
        whole = pa.Table.from_batches(decoder.batches(block, 0, num_rows))
        for first, end in [(0, 1), (num_rows - 1, num_rows), (num_rows // 3, num_rows - num_rows // 4)]:
            if first < end:
                part = pa.Table.from_batches(decoder.batches(block, first, end))
                assert part.to_pylist() == whole.slice(first, end - first).to_pylist()
    decoder.close()


@pytest.mark.parametrize(("text", "byte"), [(b'1,2\n3,"open\n4,5\n', 4), (b'1,5" disk\n\n"', 11)])
def test_a_quote_that_is_never_closed_names_its_record(tmp_path: Path, text: bytes, byte: int) -> None:
    with pytest.raises(DataError, match=f"a.csv: the record at byte {byte} ends inside quotes; close them"):
        scan_text(_file(tmp_path / "a.csv", text), 0, COMMAS)


def test_a_record_that_does_not_fit_the_share(tmp_path: Path) -> None:
    file = _file(tmp_path / "a.csv", b"1,2\n" + b"x" * 5000 + b",y\n")
    reader = BlockStream(_scan_of_chunks(file, MIB), Share("reading", 20 * KIB))

    with pytest.raises(BudgetExceeded) as caught:
        list(reader)
    assert str(caught.value) == (
        f"{file.path}: the record at byte 4 takes 44KiB while it is read and handed on, but reading may hold "
        "20KiB; raise memory.limit, or shorten the record"
    )


def test_rows_of_a_compressed_file_are_read_without_starting_over(tmp_path, monkeypatch):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x\n" + b"".join(b"%d\n" % n for n in range(400_000))))
    found = scan_files(CSV_WITH_HEADER, list_files(str(tmp_path)), ReadRequest())
    opened: list[object] = []
    monkeypatch.setattr(pa, "CompressedInputStream", _counting(pa.CompressedInputStream, opened))
    decoder = found.decoder(Share("reading", found.sizes.min_bytes))
    rows = [(0, 10), (10, 200_000), (350_000, 400_000)]
    read = [flat(decoder.batches(0, first, end), "x") for first, end in rows]

    assert read == [list(range(first, end)) for first, end in rows]
    assert len(opened) == 1
    assert flat(decoder.batches(0, 5, 7), "x") == [5, 6]
    assert len(opened) == 2


def _index(file: DataFile, folder: Path, framing: CsvRecords = COMMAS) -> list[int]:
    (index,) = index_text([file], [0], framing, folder)
    return index.num_records.tolist()


def _counting(make: Callable[..., object], calls: list[object]) -> Callable[..., object]:
    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return make(*arguments)

    return counted


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The files that were gone through; the indexes of small ones are kept too."""
    calls: list[object] = []
    monkeypatch.setattr(indexed_files, "scan_text", _counting(scan_text, calls))
    monkeypatch.setattr(indexed_files, "MIN_KEPT_BYTES", 3)
    return calls


def test_an_index_is_kept_until_it_is_damaged_or_the_file_changes(tmp_path, scans):
    content = b"1\n" * 100_000
    file, folder = _file(tmp_path / "a.csv", content), tmp_path / "run" / "index"

    assert [_index(file, folder) for _ in range(3)] == [[100_000]] * 3
    assert len(scans) == 1
    (kept,) = folder.iterdir()
    assert kept.match("a.csv.*.npz")
    whole = kept.read_bytes()
    for damaged in (whole[:-30], b""):
        kept.write_bytes(damaged)
        assert _index(file, folder) == [100_000]
        assert kept.read_bytes() == whole
    assert len(scans) == 3
    file = _file(tmp_path / "a.csv", content[:100_000] + b"123\n" + content[100_004:])
    os.utime(file.path, ns=(0, 0))
    assert _index(file, folder) == [99_999]
    assert _index(_file(tmp_path / "small.csv", b"1\n"), tmp_path / "small") == [1]
    assert not (tmp_path / "small").exists()


def test_another_delimiter_is_another_index(tmp_path: Path, scans: list[object]) -> None:
    file = _file(tmp_path / "a.csv", b'1,"a\n2,b"\n3\n')

    assert _index(file, tmp_path / "index") == [2]
    assert _index(file, tmp_path / "index", CsvRecords("|")) == [3]


@pytest.mark.parametrize("share_bytes", [8 * KIB, MIB], ids=["in pieces", "whole"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, share_bytes: int) -> None:
    path = write_csv(tmp_path, [500]) / "part-000.csv"
    reader = BlockStream(
        scan_files(CSV_WITH_HEADER, list_files(str(path)), ReadRequest()), Share("reading", share_bytes)
    )
    path.write_text("number,text\n1,a\n")

    with pytest.raises(DataError, match=r"part-000.csv: has changed while it was being read"):
        list(reader)
