"""Every way in which the wire format allows an Example to be written, not only that of our writer."""

import random
import struct
from pathlib import Path

import pytest

from penstock.config.errors import DataError
from tests.readers.tfrecord_samples import (
    BYTES,
    FLOATS,
    INT64S,
    entry,
    example,
    feature,
    int64,
    loose_floats,
    loose_int64s,
    packed_floats,
    packed_int64s,
    read,
    record,
    sized,
    texts,
    varint,
    write_records,
)

EXTREMES = [0, 1, 127, 128, -1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    "values",
    [
        packed_int64s(*EXTREMES),
        loose_int64s(*EXTREMES),
        packed_int64s(*EXTREMES[:3])
        + loose_int64s(EXTREMES[3])
        + packed_int64s()
        + packed_int64s(*EXTREMES[4:]),
        varint(5 << 3) + b"\x07" + packed_int64s(*EXTREMES) + sized(9, b"unknown"),
    ],
    ids=["packed", "one by one", "in several runs", "among unknown fields"],
)
def test_lists_of_int64(tmp_path: Path, values: bytes):
    path = write_records(tmp_path / "a.tfrecord", example(entry("x", feature(INT64S, values))))

    assert read(path, {"x": ["int64"]})["x"].to_pylist() == [EXTREMES]
    assert read(path, {"x": ("int64", 7)})["x"].to_pylist() == [EXTREMES]


@pytest.mark.parametrize(
    "values",
    [packed_floats(0.5, -2.0), loose_floats(0.5, -2.0), loose_floats(0.5) + packed_floats(-2.0)],
    ids=["packed", "one by one", "in several runs"],
)
def test_lists_of_floats(tmp_path: Path, values: bytes):
    path = write_records(tmp_path / "a.tfrecord", example(entry("x", feature(FLOATS, values))))

    assert read(path, {"x": ["float32"]})["x"].to_pylist() == [[0.5, -2.0]]


@pytest.mark.parametrize(
    "values", [packed_int64s(300), loose_int64s(300), packed_int64s() + loose_int64s(300)]
)
def test_one_int64(tmp_path: Path, values: bytes):
    path = write_records(tmp_path / "a.tfrecord", example(entry("x", feature(INT64S, values))))

    assert read(path, {"x": "int64"})["x"].to_pylist() == [300]


@pytest.mark.parametrize("num_bytes", range(1, 11))
def test_one_int64_of_any_number_of_bytes(tmp_path: Path, num_bytes: int):
    bits = 2 ** min(7 * num_bytes, 64)
    values = [bits - 1, bits // 128, bits // 3]
    values = [value if value < 2**63 else value - 2**64 for value in values]
    path = write_records(tmp_path / "a.tfrecord", *(example(int64("x", value)) for value in values))

    assert read(path, {"x": "int64"})["x"].to_pylist() == values


@pytest.mark.parametrize(
    "values", [packed_floats(2.5), loose_floats(2.5), sized(8, b"") + packed_floats(2.5)]
)
def test_one_float(tmp_path: Path, values: bytes):
    path = write_records(tmp_path / "a.tfrecord", example(entry("x", feature(FLOATS, values))))

    assert read(path, {"x": "float32"})["x"].to_pylist() == [2.5]


def test_the_last_of_several_entries_with_one_key_counts(tmp_path: Path):
    path = write_records(tmp_path / "a.tfrecord", example(int64("x", 1), int64("y", 5), int64("x", 2)))

    assert read(path).to_pylist() == [{"x": 2, "y": 5}]


def test_features_in_two_parts_are_one(tmp_path: Path):
    path = write_records(tmp_path / "a.tfrecord", example(int64("x", 1)) + example(int64("y", 2)))

    assert read(path).to_pylist() == [{"x": 1, "y": 2}]


def test_a_feature_without_a_list_is_missing(tmp_path: Path):
    path = write_records(
        tmp_path / "a.tfrecord",
        example(entry("x", b""), int64("y", 1)),
        example(sized(1, b"x"), int64("y", 2)),
        example(int64("x", 3), int64("y", 3)),
        b"",
    )

    assert read(path)["x"].to_pylist() == [None, None, 3, None]


def test_an_empty_list_is_no_value(tmp_path: Path):
    path = write_records(tmp_path / "a.tfrecord", example(int64("x")), example(int64("x", 3)))

    assert read(path, {"x": "int64"})["x"].to_pylist() == [None, 3]
    assert read(path, {"x": ("int64", 1)})["x"].to_pylist() == [None, [3]]
    assert read(path, {"x": ["int64"]})["x"].to_pylist() == [[], [3]]


def test_the_last_list_of_a_feature_counts(tmp_path: Path):
    both = feature(FLOATS, packed_floats(1.0)) + feature(INT64S, packed_int64s(4))
    path = write_records(tmp_path / "a.tfrecord", example(entry("x", both)))

    assert read(path, {"x": "int64"})["x"].to_pylist() == [4]


def test_a_value_may_stand_before_its_key_among_unknown_fields(tmp_path: Path):
    fixed = varint(7 << 3 | 1) + struct.pack("<d", 1.0) + varint(8 << 3 | 5) + struct.pack("<f", 1.0)
    swapped = (
        fixed
        + sized(2, feature(INT64S, packed_int64s(4)) + fixed)
        + varint(9 << 3)
        + b"\x05"
        + sized(1, b"x")
    )
    features = sized(1, fixed + sized(1, swapped) + sized(4, b"?") + sized(1, int64("y", 5)))
    path = write_records(tmp_path / "a.tfrecord", fixed + features + fixed)

    assert read(path).to_pylist() == [{"x": 4, "y": 5}]


def test_keys_may_be_empty_long_or_not_ascii(tmp_path: Path):
    keys = ["", "k" * 200, "größe", "k" * 199 + "x"]
    path = write_records(tmp_path / "a.tfrecord", example(*(int64(key, i) for i, key in enumerate(keys))))

    assert read(path).to_pylist() == [dict(sorted((key, i) for i, key in enumerate(keys)))]


def test_keys_may_come_in_any_order_in_each_record(tmp_path: Path):
    draw = random.Random(3)
    names = [f"f{i}" for i in range(50)]
    rows = [{name: draw.randrange(10**6) for name in names} for _ in range(40)]
    shuffled = [draw.sample(sorted(row.items()), len(row) - draw.randrange(3)) for row in rows]
    path = write_records(
        tmp_path / "a.tfrecord", *(example(*(int64(*pair) for pair in pairs)) for pairs in shuffled)
    )

    assert read(path, columns=names).to_pylist() == [
        {name: dict(pairs).get(name) for name in names} for pairs in shuffled
    ]


def test_more_features_than_keys_are_remembered(tmp_path: Path):
    row = {f"f{i:04}": i for i in range(5000)}
    data = example(*(int64(*pair) for pair in row.items()))
    path = write_records(tmp_path / "a.tfrecord", data, data)

    assert (
        read(path, columns=["f4999", "f0000", "f4500"]).to_pylist()
        == [{"f4999": 4999, "f0000": 0, "f4500": 4500}] * 2
    )


def test_texts_of_any_length(tmp_path: Path):
    values = [b"", b"a" * 127, b"b" * 128, "ö".encode() * 10_000]
    path = write_records(tmp_path / "a.tfrecord", example(entry("x", feature(BYTES, texts(*values)))))

    assert read(path)["x"].to_pylist() == [[value.decode() for value in values]]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xff" * 11, "is not a tf.train.Example; no other message can be read"),
        (b"\x0a\x7f", "is not a tf.train.Example; no other message can be read"),
        (sized(1, b"\x0a\x05ab"), "is not a tf.train.Example; no other message can be read"),
        (sized(1, sized(1, b"\x0a\x05ab")), "is not a tf.train.Example; no other message can be read"),
        (example(entry("x", b"\x1a\x05ab")), "is not a tf.train.Example; no other message can be read"),
        (b"\x0b", "is not a tf.train.Example; no other message can be read"),
        (
            example(entry("x", feature(INT64S, b"\x0a\x02\x80\x80"))),
            "feature 'x': is not a tf.train.Example; no other message can be read",
        ),
        (
            example(entry("x", feature(INT64S, b"\x0a\x0c" + b"\x80" * 11 + b"\x01"))),
            "feature 'x': is not a tf.train.Example; no other message can be read",
        ),
        (
            example(entry("x", feature(INT64S, packed_int64s(1)) * 2)),
            "feature 'x': a feature stands in parts, as no protobuf library writes it; copy or write the file again",
        ),
    ],
)
def test_what_is_no_example_is_told_with_its_place(tmp_path: Path, data: bytes, problem: str):
    path = write_records(tmp_path / "a.tfrecord", example(int64("x", 1)), data)
    offset = len(record(example(int64("x", 1))))

    with pytest.raises(DataError) as error:
        read(path, {"x": "int64"})

    assert str(error.value) == f"{path}: record 1 at byte {offset}: {problem}"
