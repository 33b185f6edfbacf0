"""Second opinions: any bytes are what protobuf's own library reads, or an error."""

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from tests.readers.tfrecord_samples import read, write_records

_PROTO = """
name: "example.proto" package: "p" syntax: "proto3"
message_type { name: "BytesList" field { name: "value" number: 1 type: TYPE_BYTES label: LABEL_REPEATED } }
message_type { name: "FloatList" field { name: "value" number: 1 type: TYPE_FLOAT label: LABEL_REPEATED } }
message_type { name: "Int64List" field { name: "value" number: 1 type: TYPE_INT64 label: LABEL_REPEATED } }
message_type {
  name: "Feature"
  oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 type: TYPE_MESSAGE type_name: ".p.BytesList" oneof_index: 0 }
  field { name: "float_list" number: 2 type: TYPE_MESSAGE type_name: ".p.FloatList" oneof_index: 0 }
  field { name: "int64_list" number: 3 type: TYPE_MESSAGE type_name: ".p.Int64List" oneof_index: 0 }
}
message_type {
  name: "Features"
  field { name: "feature" number: 1 type: TYPE_MESSAGE type_name: ".p.Features.FeatureEntry" label: LABEL_REPEATED }
  nested_type {
    name: "FeatureEntry"
    field { name: "key" number: 1 type: TYPE_STRING }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".p.Feature" }
    options { map_entry: true }
  }
}
message_type { name: "Example" field { name: "features" number: 1 type: TYPE_MESSAGE type_name: ".p.Features" } }
"""
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(text_format.Parse(_PROTO, descriptor_pb2.FileDescriptorProto()))
Example: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("p.Example"))
SCHEMA = {"a": ["int64"], "b": ["float32"], "c": ["bytes"]}
LISTS = {"a": "int64_list", "b": "float_list", "c": "bytes_list"}

ROWS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
        "b": st.lists(st.floats(width=32), max_size=4),
        "c": st.lists(st.binary(max_size=150), max_size=3),
        "other": st.lists(st.integers(0, 9), max_size=3),
    },
)


def serialized(row: dict[str, list[Any]]) -> bytes:
    example = Example()
    for name, values in row.items():
        feature = example.features.feature[name]
        chosen = getattr(feature, LISTS.get(name, "int64_list"))
        chosen.SetInParent()
        chosen.value.extend(values)
    data: bytes = example.SerializeToString()
    return data


def by_protobuf(data: bytes) -> dict[str, Any] | None:
    """The lists of a record; None: it is no Example, or has a list of another kind."""
    try:
        features = Example.FromString(data).features.feature
    except DecodeError:
        return None
    found: dict[str, Any] = {name: [] for name in SCHEMA}
    for name in SCHEMA:
        kind = features[name].WhichOneof("kind") if name in features else None
        if kind not in (None, LISTS[name]):
            return None
        found[name] = list(getattr(features[name], LISTS[name]).value) if kind else []
    return found


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Floats as their bits: NaN is like itself."""
    return {**row, "b": [struct.pack("<f", value) for value in row["b"]]}


CHANGES = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 255), st.sampled_from(["set", "add", "drop"])), max_size=4
)


@settings(max_examples=200)
@given(ROWS, CHANGES)
@example({"a": [1]}, [(6, 0x80, "set")])  # a feature whose name is not UTF-8
def test_any_bytes(tmp_path_factory, row, changes):
    data = bytearray(serialized(row))
    for position, byte, change in changes:
        at = position % (len(data) + 1)
        data[at : at + (change != "add")] = b"" if change == "drop" else bytes([byte])
    path = write_records(tmp_path_factory.mktemp("data") / "a.tfrecord", bytes(data), b"")
    expected = by_protobuf(bytes(data))
    for schema in (
        SCHEMA,
        {"a": "int64", "b": "float32", "c": "string"},
        {"a": ("int64", 2), "c": ("bytes", 1)},
    ):
        try:
            found = read(path, schema).to_pylist()
        except DataError as error:
            assert "record 0 at byte 0" in str(error)  # noqa: PT017
            assert changes or schema is not SCHEMA
            continue
        assert len(found) == 2
        if expected is not None and schema is SCHEMA:
            assert comparable(found[0]) == comparable(expected)


@pytest.mark.slow
def test_no_kernel_reads_or_writes_outside_of_its_arrays(tmp_path: Path):
    """The same and all other damaged bytes, with kernels that check every index."""
    folder = Path(__file__).parent
    names = ["protobuf", "damage", "wire", "write"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
        + [str(folder / f"test_tfrecord_{name}.py") for name in names],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
