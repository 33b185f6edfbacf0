"""Damaged files: an error with file, record and byte, and never a wrong value."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.readers.quarantine import Quarantine
from penstock.readers.tfrecord_write import write_tfrecord
from tests.readers.tfrecord_samples import example, int64, read, record, write_records

TABLE = pa.table(
    {
        "x": pa.array([1, None, 300]),
        "y": pa.array([["a"], [], ["bc", ""]]),
        "z": pa.array([0.5, 1.5, 2.5], pa.float32()),
    }
)
SCHEMA = {"x": "int64", "y": ["string"], "z": "float32"}


@pytest.fixture(params=["a.tfrecord", "a.tfrecord.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write_tfrecord(tmp_path / request.param, TABLE)
    return tmp_path / request.param


def _outcome(path: Path) -> pa.Table | str:
    """The rows, or what is said instead."""
    try:
        return read(path, SCHEMA)
    except DataError as error:
        return str(error)


def test_any_flipped_bit_is_an_error_or_changes_no_value(path: Path):
    whole = path.read_bytes()
    num_harmless = 0
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        outcome = _outcome(path)
        num_harmless += isinstance(outcome, pa.Table)
        assert outcome.startswith(f"{path}: ") if isinstance(outcome, str) else outcome.equals(TABLE)

    # The header of gzip holds a time and the name of a system, which mean nothing.
    assert num_harmless <= (10 if path.suffix == ".gz" else 0)


def test_a_file_cut_anywhere_gives_its_whole_records_or_an_error(path: Path):
    whole = path.read_bytes()
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        outcome = _outcome(path)
        if isinstance(outcome, str):
            assert outcome.startswith(f"{path}: ")
        else:
            assert path.suffix != ".gz"
            assert outcome.equals(TABLE.slice(0, outcome.num_rows))


def _three_records(folder: Path) -> tuple[Path, bytearray, int]:
    """A file, its bytes, and where its third record begins."""
    path = write_records(folder / "a.tfrecord", *(example(int64("x", number)) for number in range(3)))
    content = bytearray(path.read_bytes())
    return path, content, 2 * len(content) // 3


@pytest.mark.parametrize(
    ("at", "problem"),
    [
        (0, "its length fails its checksum, the file is damaged; copy or write the file again"),
        (9, "its length fails its checksum, the file is damaged; copy or write the file again"),
        (15, "its data fails its checksum, the file is damaged; copy or write the file again"),
        (-1, "its data fails its checksum, the file is damaged; copy or write the file again"),
    ],
)
def test_the_check_that_failed_is_named(tmp_path: Path, at: int, problem: str):
    path, content, offset = _three_records(tmp_path)
    content[offset + at if at >= 0 else at] ^= 255
    path.write_bytes(content)

    with pytest.raises(DataError) as error:
        read(path)

    assert str(error.value) == f"{path}: record 2 at byte {offset}: {problem}"


@pytest.mark.parametrize("num_left", [1, 11, 12, 20])
def test_a_torn_record_is_named(tmp_path: Path, num_left: int):
    path, content, offset = _three_records(tmp_path)
    path.write_bytes(content[: offset + num_left])

    with pytest.raises(DataError) as error:
        read(path)

    problem = "the file ends inside it, it was cut short; copy or write the file again"
    assert str(error.value) == f"{path}: record 2 at byte {offset}: {problem}"


def test_a_file_that_is_all_damaged_says_so(tmp_path: Path):
    path = write_records(tmp_path / "a.tfrecord", b"no example")

    with pytest.raises(
        DataError, match=r"a\.tfrecord: is not a tf.train.Example; .*; no other record was found"
    ):
        read(path)


def test_a_compressed_file_without_the_suffix_is_recognized(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord.gz", TABLE)
    path = (tmp_path / "a.tfrecord.gz").rename(tmp_path / "b.tfrecord")

    with pytest.raises(DataError) as error:
        read(path)

    assert str(error.value) == f"{path}: is compressed with gzip; give it a name that ends with .gz"


def test_records_that_cannot_be_used_go_to_quarantine(tmp_path: Path):
    bad = bytearray(record(example(int64("x", 2), int64("y", 2))))
    bad[-6] ^= 255
    path = tmp_path / "a.tfrecord"
    good = [record(example(int64("x", n), int64("y", n))) for n in (0, 1, 3)]
    two_values = record(example(int64("x", 4, 4), int64("y", 4)))
    path.write_bytes(good[0] + good[1] + bytes(bad) + good[2] + record(b"?") + two_values)
    quarantine = Quarantine(tmp_path / "bad_rows.jsonl", 10, [str(path)])

    table = read(path, {"x": "int64", "y": "int64"}, quarantine=quarantine)

    assert table["x"].to_pylist() == [0, 1, None, 3, None, None]
    assert table["y"].to_pylist() == [0, 1, None, 3, None, 4]
    lines = (tmp_path / "bad_rows.jsonl").read_text().splitlines()
    assert [line.partition('"problem": "')[2].partition(",")[0].partition(";")[0] for line in lines] == [
        "its data fails its checksum",
        "is not a tf.train.Example",
        "holds 2 values",
    ]
