"""Every way in which the wire format allows an Example to be written, not only that of our writer."""

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from penstock.config.errors import DataError
from tests.readers.tfrecord_samples import (
    BYTES,
    FLOATS,
    INT64S,
    entry,
    example,
    int64,
    loose_floats,
    loose_int64s,
    packed_floats,
    packed_int64s,
    read,
    record,
    sized,
    strings,
    varint,
    write_records,
)

EXTREMES = [0, 1, 127, 128, -1, 2**63 - 1, -(2**63)]
RUNS = packed_int64s(*EXTREMES[:3]) + loose_int64s(128) + packed_int64s() + packed_int64s(*EXTREMES[4:])
FIXED = varint(7 << 3 | 1) + struct.pack("<d", 1.0) + varint(8 << 3 | 5) + struct.pack("<f", 1.0)
STRINGS = ["", "a" * 127, "b" * 128, "ö" * 10_000]
KEYS = ["", "k" * 200, "größe", "k" * 199 + "x"]


def _x(kind: int, values: bytes) -> bytes:
    """A record with a feature x that holds a list."""
    return example(entry("x", sized(kind, values)))


@pytest.mark.parametrize(
    ("declared", "data", "value"),
    [
        (["int64"], _x(INT64S, packed_int64s(*EXTREMES)), EXTREMES),
        (["int64"], _x(INT64S, RUNS), EXTREMES),
        (("int64", 7), _x(INT64S, RUNS), EXTREMES),
        (["int64"], _x(INT64S, FIXED + packed_int64s(*EXTREMES) + sized(9, b"unknown")), EXTREMES),
        (["float32"], _x(FLOATS, loose_floats(0.5) + packed_floats(-2.0)), [0.5, -2.0]),
        (["string"], _x(BYTES, strings(*STRINGS)), STRINGS),
        ("int64", _x(INT64S, packed_int64s() + loose_int64s(300)), 300),
        ("float32", _x(FLOATS, loose_floats(2.5)), 2.5),
        ("float32", _x(FLOATS, sized(8, b"") + packed_floats(2.5)), 2.5),
        ("int64", _x(INT64S, b""), None),
        (("int64", 1), _x(INT64S, b""), None),
        (["int64"], _x(INT64S, b""), []),
        ("int64", example(int64("x", 1), int64("x", 2)), 2),
        ("int64", example(int64("x", 1)) + example(int64("y", 2)), 1),
        ("int64", example(entry("x", sized(FLOATS, packed_floats(1)) + sized(INT64S, packed_int64s(4)))), 4),
    ],
)
def test_lists_and_values(tmp_path: Path, declared: Any, data: bytes, value: Any):
    path = write_records(tmp_path / "a.tfrecord", data)

    assert read(path, {"x": declared})["x"].to_pylist() == [value]


def test_a_feature_without_a_list_is_missing(tmp_path: Path):
    path = write_records(
        tmp_path / "a.tfrecord",
        example(entry("x", b""), int64("y", 1)),
        example(sized(1, b"x"), int64("y", 2)),
        example(int64("x", 3), int64("y", 3)),
        b"",
    )

    assert read(path)["x"].to_pylist() == [None, None, 3, None]


def test_keys_of_any_kind_and_a_value_before_its_key(tmp_path: Path):
    swapped = FIXED + sized(2, sized(INT64S, packed_int64s(4)) + FIXED) + FIXED + sized(1, b"x")
    features = FIXED + sized(1, swapped) + sized(4, b"?")
    features += b"".join(sized(1, int64(key, i)) for i, key in enumerate(KEYS))
    path = write_records(tmp_path / "a.tfrecord", FIXED + sized(1, features) + FIXED)

    assert read(path).to_pylist() == [{"x": 4} | {key: i for i, key in enumerate(KEYS)}]


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
    data = example(*(int64(f"f{i:04}", i) for i in range(5000)))
    path = write_records(tmp_path / "a.tfrecord", data, data)

    expected = {"f4999": 4999, "f0000": 0, "f4500": 4500}
    assert read(path, columns=list(expected)).to_pylist() == [expected] * 2


NO_EXAMPLE = "is not a tf.train.Example; no other message can be read"
IN_PARTS = "a feature stands in parts, as no protobuf library writes it; copy or write the file again"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xff" * 11, NO_EXAMPLE),
        (b"\x0a\x7f", NO_EXAMPLE),
        (sized(1, b"\x0a\x05ab"), NO_EXAMPLE),
        (sized(1, sized(1, b"\x0a\x05ab")), NO_EXAMPLE),
        (example(entry("x", b"\x1a\x05ab")), NO_EXAMPLE),
        (b"\x0b", NO_EXAMPLE),
        (_x(INT64S, b"\x0a\x02\x80\x80"), f"feature 'x': {NO_EXAMPLE}"),
        (_x(INT64S, b"\x0a\x0c" + b"\x80" * 11 + b"\x01"), f"feature 'x': {NO_EXAMPLE}"),
        (example(entry("x", sized(INT64S, packed_int64s(1)) * 2)), f"feature 'x': {IN_PARTS}"),
    ],
)
def test_what_is_no_example_is_named(tmp_path: Path, data: bytes, problem: str):
    path = write_records(tmp_path / "a.tfrecord", example(int64("x", 1)), data)
    offset = len(record(example(int64("x", 1))))

    with pytest.raises(DataError) as error:
        read(path, {"x": "int64"})

    assert str(error.value) == f"{path}: record 1 at byte {offset}: {problem}"
