"""Which columns TFRecord files have, where their records stand, and what reading them holds."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import BudgetExceeded, ConfigError, DataError
from penstock.config.sizes import MIB
from penstock.readers.files import list_files
from penstock.readers.scan import BlockStream
from penstock.readers.sections import ReadingSection
from penstock.readers.text_file import as_text_files
from penstock.readers.tfrecord import scan_file
from penstock.readers.tfrecord_columns import parse_schema, record_ends
from penstock.readers.tfrecord_write import write_tfrecord
from penstock.runtime.budget import Share
from tests.readers.samples import open_path
from tests.readers.tfrecord_samples import example, int64, read, scan_of, write_records

NUM_ROWS = 20_000


def test_all_problems_of_a_schema_come_at_once():
    schema = {
        "a": "int46",
        "b": ("float32", 0),
        "c": ("float32", (2, 3)),
        "d": [],
        "e": ("int64", (), "zero"),
        "fine": "int64",
    }
    with pytest.raises(ConfigError) as error:
        parse_schema(schema)

    advice = 'write "int64", ("float32", 10), ["int64"] or ("int64", (), 0) with a default'
    assert str(error.value).splitlines() == [
        "5 problems:",
        "  schema['a']: the type 'int46' is unknown; did you mean 'int64'?",
        "  schema['b']: the length 0 is neither a number above 0 nor \"any\"",
        "  schema['c']: the shape (2, 3) has several dimensions; give the number of values, and reshape",
        f"  schema['d']: [] is not a type; {advice}",
        "  schema['e']: the default 'zero' is no int64",
    ]


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
    found = scan_of(tmp_path / "a.tfrecord").columns

    assert list(zip(found.names, found.types, strict=True)) == [
        ("image", pa.binary()),
        ("many", pa.list_(pa.int64())),
        ("none or one", pa.list_(pa.int64())),
        ("number", pa.float32()),
        ("one", pa.int64()),
        ("text", pa.string()),
    ]


def test_a_run_file_declares_what_it_wants_to(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord", pa.table({"x": [1], "y": [2], "z": pa.array([0.5])}))
    reading = ReadingSection(input_fields_str="x:ARRAY<BIGINT>;z:DOUBLE")
    stream = open_path(tmp_path, reading, columns=["z", "y", "x"])

    assert stream.schema.types[:3] == [pa.float64(), pa.int64(), pa.list_(pa.int64())]
    assert [batch.to_pylist() for batch in stream] == [[{"z": 0.5, "y": 2, "x": [1], "__row__": 0}]]


@pytest.mark.parametrize(
    ("late", "problem"),
    [
        (pa.array([[7, 8]]), "holds 2 values, not one"),
        (pa.array(["seven"]), "holds bytes, not int64s"),
    ],
)
def test_a_record_that_contradicts_later_says_to_declare(tmp_path: Path, late: pa.Array, problem: str):
    # More than is looked at whole: the record lies between the parts that are sampled.
    write_tfrecord(tmp_path / "many.tfrecord", pa.table({"x": pa.array(range(60_000))}))
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
    with pytest.raises(DataError, match=r"there is no record in any file, so that the type of 'x' is"):
        read(tmp_path, columns=["x"])


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_chunks_have_whole_records_of_a_mebibyte_or_one_larger_record(tmp_path: Path, name: str):
    sizes = [600_000, 600_000, 300_000, 3 * MIB, 10, 20]
    images = [np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes() for size in sizes]
    path = tmp_path / name
    write_tfrecord(path, pa.table({"image": pa.array(images)}))
    offsets, num_bytes, num_records = zip(*scan_file(*as_text_files(list_files(str(path)))), strict=True)

    assert num_records == (1, 2, 1, 2)
    assert list(offsets) == [0, *np.cumsum(num_bytes)[:-1].tolist()]
    assert [size <= MIB for size in num_bytes] == [True, True, False, True]
    assert read(path, {"image": "bytes"})["image"].to_pylist() == images
    assert len(scan_of(path).blocks) == (1 if path.suffix == ".gz" else 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    numbers = np.arange(NUM_ROWS)
    table = pa.table(
        {
            "n": numbers,
            "text": [f"text {n}" for n in range(NUM_ROWS)],
            "small": pa.array([[n % 100] * (n % 40) for n in range(NUM_ROWS)]),
            "fixed": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(numbers, 3), pa.float32()), 3),
        }
    )
    return Path(write_tfrecord(tmp_path / "a.tfrecord", table)[0])


@pytest.mark.parametrize("ample", [False, True], ids=["the least share", "an ample share"])
def test_a_share_that_a_scan_names_is_enough(path: Path, ample: bool):
    scanned = scan_of(path)
    share = Share("reading", scanned.sizes.ample_bytes if ample else scanned.sizes.min_bytes)
    batches = list(BlockStream(scanned, share))

    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(NUM_ROWS))
    assert 0 < share.peak_bytes <= share.limit_bytes
    assert max(batch.nbytes for batch in batches) <= share.limit_bytes // 2
    if ample:
        assert len(batches) == len(scanned.blocks)
        assert scanned.row_bytes == pytest.approx(sum(batch.nbytes for batch in batches) / NUM_ROWS, rel=0.05)
        assert scanned.sizes.block_bytes == pytest.approx(max(batch.nbytes for batch in batches), rel=0.2)


def test_arrow_allocates_no_more_than_is_leased(path: Path):
    scanned = scan_of(path, {"n": "int32", "small": ["int8"], "text": ("string", (), "none")})
    share = Share("reading", scanned.sizes.ample_bytes)
    before = pa.total_allocated_bytes()
    for _ in BlockStream(scanned, share):
        assert pa.total_allocated_bytes() - before <= share.held_bytes


def test_a_record_that_does_not_fit_is_named(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord", pa.table({"image": pa.array([b"a", b"b" * 4 * MIB])}))

    with pytest.raises(BudgetExceeded, match=r"a\.tfrecord: the record at byte 34 takes 28MiB .* reading"):
        list(BlockStream(scan_of(tmp_path / "a.tfrecord"), Share("reading", 4 * MIB)))


def test_a_feature_of_two_types_is_refused(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord", pa.table({"x": [1]}))
    write_tfrecord(tmp_path / "b.tfrecord", pa.table({"x": ["one"]}))
    with pytest.raises(DataError) as error:
        read(tmp_path)
    assert str(error.value) == (
        f"feature 'x' holds int64s in {tmp_path}/a.tfrecord but bytes in {tmp_path}/b.tfrecord; "
        "write all records with one type"
    )


def test_a_feature_whose_name_is_no_string_is_refused_only_where_all_are_read(tmp_path: Path):
    bad = int64("A", 1).replace(b"A", b"\x80")
    path = write_records(tmp_path / "a.tfrecord", example(int64("n", 7), bad))

    assert read(path, columns=["n"]).to_pydict() == {"n": [7]}
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value) == (
        f"{path}: has a feature whose name is not UTF-8: b'\\x80'; name the columns to read, or write it again"
    )
