"""Damaged files: an error with file, record and byte, and never a wrong value."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.readers.stream import Quarantine
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
    try:
        return read(path, SCHEMA)
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("change", ["a bit is flipped", "the file is cut"])
def test_a_damaged_file_is_an_error_or_changes_no_value(path: Path, change: str):
    whole = path.read_bytes()
    num_harmless = 0
    for at in range(1, len(whole)):
        damaged = bytearray(whole)
        if change == "a bit is flipped":
            damaged[at] ^= 1 << at % 8
        else:
            del damaged[at:]
        path.write_bytes(damaged)
        outcome = _outcome(path)
        num_harmless += isinstance(outcome, pa.Table)
        if isinstance(outcome, str):
            assert outcome.startswith(f"{path}: ")
        else:  # a file that ends with a whole record has fewer
            assert outcome.equals(TABLE if change == "a bit is flipped" else TABLE.slice(0, outcome.num_rows))

    # The header of gzip holds a time and the name of a system, which mean nothing.
    allowed = {"a bit is flipped": (0, 10), "the file is cut": (2, 0)}[change]
    assert num_harmless <= allowed[path.suffix == ".gz"]


@pytest.mark.parametrize(
    ("at", "problem"),
    [
        (0, "its length fails its checksum, the file is damaged"),
        (15, "its data fails its checksum, the file is damaged"),
        (-1, "its data fails its checksum, the file is damaged"),
        (1, "the file ends inside it, it was cut short"),
        (20, "the file ends inside it, it was cut short"),
    ],
)
def test_the_record_and_what_is_wrong_are_named(tmp_path: Path, at: int, problem: str):
    path = write_records(tmp_path / "a.tfrecord", *(example(int64("x", number)) for number in range(3)))
    content = bytearray(path.read_bytes())
    offset = 2 * len(content) // 3
    if "cut short" in problem:
        del content[offset + at :]
    else:
        content[offset + at if at >= 0 else at] ^= 255
    path.write_bytes(content)

    with pytest.raises(DataError) as error:
        read(path)

    assert str(error.value) == f"{path}: record 2 at byte {offset}: {problem}; copy or write the file again"


def test_a_file_that_is_all_damaged_says_so(tmp_path: Path):
    path = write_records(tmp_path / "a.tfrecord", b"no example")

    with pytest.raises(DataError, match=r"a\.tfrecord: is not a tf.train.Example; .*; no other record was"):
        read(path)


def test_a_file_may_be_compressed_whatever_its_name_says(tmp_path: Path):
    for name, other_name in (("a.tfrecord.gz", "b.tfrecord"), ("c.tfrecord", "d.tfrecord.gz")):
        write_tfrecord(tmp_path / name, TABLE)
        path = (tmp_path / name).rename(tmp_path / other_name)

        assert read(path).equals(TABLE.select(read(path).column_names))


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
    problems = [json.loads(line)["problem"] for line in quarantine.path.read_text().splitlines()]
    assert [problem[:10] for problem in problems] == ["its data f", "is not a t", "holds 2 va"]
