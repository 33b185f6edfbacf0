"""Columns that nobody declared."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.prep.tfrecord.write import write_tfrecord
from penstock.readers.sections import ReadingSection
from penstock.readers.tfrecord.framing import record_ends
from tests.readers.samples import open_path
from tests.readers.tfrecord.wire_samples import example, int64, read, survey_of, write_records


def test_one_value_everywhere_is_a_scalar_anything_else_a_list(tmp_path: Path):
    table = pa.table(
        {
            "one": pa.array([1, None, 3]),
            "many": pa.array([[1, 2], [3], None]),
            "none or one": pa.array([[1], [], [3]]),
            "number": pa.array([0.5, None, None], pa.float32()),
            "text": ["a", "ö", None],
            "image": pa.array([b"\xff\xd8", b"a", None]),
        }
    )
    write_tfrecord(tmp_path / "a.tfrecord", table)
    found = survey_of(tmp_path / "a.tfrecord").columns

    assert dict(zip(found.names, found.types, strict=True)) == {
        "image": pa.binary(),
        "many": pa.list_(pa.int64()),
        "none or one": pa.list_(pa.int64()),
        "number": pa.float32(),
        "one": pa.int64(),
        "text": pa.string(),
    }
    assert found.names == sorted(found.names)


def test_all_files_are_looked_at(tmp_path: Path):
    write_tfrecord(tmp_path / "0.tfrecord", pa.table({"x": [1]}))
    write_tfrecord(tmp_path / "1.tfrecord", pa.table({"x": [[2, 3]], "y": ["late"]}))

    assert read(tmp_path).to_pylist() == [{"x": [1], "y": None}, {"x": [2, 3], "y": "late"}]


def test_a_run_file_declares_what_it_wants_to(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord", pa.table({"x": [1], "y": [2], "z": pa.array([0.5])}))
    reading = ReadingSection(input_fields_str="x:ARRAY<BIGINT>;z:DOUBLE")
    stream = open_path(tmp_path, reading, columns=["z", "y", "x"])

    assert stream.schema.types[:3] == [pa.float64(), pa.int64(), pa.list_(pa.int64())]
    assert [batch.to_pylist() for batch in stream] == [[{"z": 0.5, "y": 2, "x": [1], "__row__": 0}]]


def test_bytes_are_of_no_use_to_features(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord", pa.table({"image": pa.array([b"\xff\xd8"])}))

    with pytest.raises(DataError, match=r"column 'image': has type binary, which cannot be used"):
        open_path(tmp_path, columns=["image"])


def test_a_feature_of_two_kinds_names_both_files(tmp_path: Path):
    write_tfrecord(tmp_path / "0.tfrecord", pa.table({"x": [1]}))
    write_tfrecord(tmp_path / "1.tfrecord", pa.table({"x": ["one"]}))

    with pytest.raises(DataError) as error:
        survey_of(tmp_path)

    assert str(error.value) == (
        f"feature 'x' holds int64s in {tmp_path}/0.tfrecord but bytes in {tmp_path}/1.tfrecord; "
        "write all records with one type"
    )


@pytest.mark.parametrize(
    ("late", "problem"),
    [
        (pa.array([[7, 8]]), "holds 2 values, not one"),
        (pa.array(["seven"]), "holds bytes, not int64s"),
    ],
)
def test_a_record_that_contradicts_later_says_to_declare(tmp_path: Path, late: pa.Array, problem: str):
    # More than is looked at whole: the record lies between the places from which the sample is taken.
    many = pa.table({"x": pa.array(range(60_000))})
    write_tfrecord(tmp_path / "many.tfrecord", many)
    write_tfrecord(tmp_path / "late.tfrecord", pa.table({"x": late}))
    whole = (tmp_path / "many.tfrecord").read_bytes()
    ends = record_ends(whole)
    row = int((ends < len(whole) // 14).sum())
    cut = int(ends[row - 1])
    path = tmp_path / "both.tfrecord"
    path.write_bytes(whole[:cut] + (tmp_path / "late.tfrecord").read_bytes() + whole[cut:])

    with pytest.raises(DataError) as error:
        read(path)

    assert str(error.value) == (
        f"{path}: record {row} at byte {cut}: feature 'x': {problem} as declared or as in other records; "
        "declare its type in a schema, or in the input_fields of a run file"
    )


def test_without_records_types_are_unknown(tmp_path: Path):
    (tmp_path / "a.tfrecord").write_bytes(b"")

    assert read(tmp_path).num_rows == 0
    assert read(tmp_path, {"x": "int64"}).schema == pa.schema([("x", pa.int64())])
    with pytest.raises(
        DataError, match=r"there is no record in any file, so that the type of 'x' is unknown"
    ):
        read(tmp_path, columns=["x"])


def test_a_schema_gives_its_columns_and_no_others(tmp_path: Path):
    path = write_records(tmp_path / "a.tfrecord", example(int64("x", 1), int64("y", 2)))

    assert read(path, {"y": "int64", "z": "string"}).to_pylist() == [{"y": 2, "z": None}]
    with pytest.raises(DataError, match=r"the schema has no column 'x1'; did you mean 'x'\?"):
        read(path, {"x": "int64"}, columns=["x1"])


def test_a_name_that_is_reserved_is_refused(tmp_path: Path):
    path = write_records(tmp_path / "a.tfrecord", example(int64("__row__", 1)))

    with pytest.raises(DataError, match=r"column '__row__': this name is reserved for the origin of rows"):
        read(path)
