"""Files of ours open in TensorFlow, and files of TensorFlow open here.

TensorFlow runs in another process, which has its threads and its protobuf registry: this file, run as a script.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not importlib.util.find_spec("tensorflow"), reason="no tensorflow; install the extra `tf`"
    ),
]
TYPES = {"one": "int64", "many": "int64", "number": "float32", "numbers": "float32"}
TYPES |= {"text": "string", "texts": "string"}
SINGLE = ("one", "number", "text")
ROWS: list[dict[str, list[Any]]] = [
    {"one": [1], "many": [1, -1, 2**62], "number": [0.5], "numbers": [1.5, -2.5], "texts": ["b", "ö" * 200]},
    {"one": [-(2**63)], "many": [], "number": [3.0], "numbers": [], "text": [""], "texts": []},
    {"one": [2**63 - 1], "many": [300] * 200, "number": [-0.0], "text": ["x" * 1000], "texts": ["", ""]},
    {},
]


@pytest.mark.parametrize("suffix", [".tfrecord", ".tfrecord.gz"])
def test_files_of_each_side_open_on_the_other(tmp_path: Path, suffix: str):
    import pyarrow as pa

    from penstock.readers.tfrecord_write import write_tfrecord
    from tests.readers.tfrecord_samples import read

    lists = {name: [row.get(name, []) for row in ROWS] for name in TYPES}
    columns = {
        name: [values[0] if values else None for values in lists[name]] if name in SINGLE else lists[name]
        for name in TYPES
    }
    arrow = {name: pa.type_for_alias(kind) for name, kind in TYPES.items()}  # type: ignore[call-overload]
    fields = [(name, kind if name in SINGLE else pa.list_(kind)) for name, kind in arrow.items()]
    ours, theirs = tmp_path / f"ours{suffix}", tmp_path / f"theirs{suffix}"
    write_tfrecord(ours, pa.table(columns, pa.schema(fields)))
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps({"read": str(ours), "write": str(theirs)}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""},
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == lists
    schema = {name: kind if name in SINGLE else [kind] for name, kind in TYPES.items()}
    assert read(theirs, schema).to_pydict() == columns
    assert read(theirs, columns=list(TYPES)).to_pydict() == columns


def read_and_write(paths: dict[str, str]) -> dict[str, Any]:
    """The side of TensorFlow: write ROWS to one file, and give all values of another."""
    import tensorflow as tf

    def feature(kind: str, values: list[Any]) -> Any:
        if kind == "int64":
            return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        if kind == "float32":
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        texts = [value.encode() for value in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=texts))

    compression = "GZIP" if paths["read"].endswith(".gz") else ""
    with tf.io.TFRecordWriter(paths["write"], compression) as writer:
        for row in ROWS:
            features = {name: feature(TYPES[name], values) for name, values in row.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    records = list(tf.data.TFRecordDataset(paths["read"], compression).as_numpy_iterator())
    spec = {name: tf.io.RaggedFeature(getattr(tf, kind)) for name, kind in TYPES.items()}
    parsed = tf.io.parse_example(records, spec)
    found = {name: parsed[name].to_list() for name in TYPES}
    for name in ("text", "texts"):
        found[name] = [[value.decode() for value in values] for values in found[name]]
    return found


if __name__ == "__main__":
    json.dump(read_and_write(json.load(sys.stdin)), sys.stdout)
