"""The side of TensorFlow: `write` and `read` files in a process of its own, which has TensorFlow.

Run as a script, so that TensorFlow with its threads and its protobuf registry never enters the test process.
"""

import json
import sys
from typing import Any

import tensorflow as tf


def options(path: str) -> str:
    return "GZIP" if path.endswith(".gz") else ""


def feature(kind: str, values: list[Any]) -> Any:
    if kind == "int64":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    if kind == "float32":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    texts = [value.encode() for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=texts))


def write(path: str, kinds: dict[str, str], rows: list[dict[str, list[Any]]]) -> None:
    """Each row has some features, each with its values."""
    with tf.io.TFRecordWriter(path, options(path)) as writer:
        for row in rows:
            features = {name: feature(kinds[name], values) for name, values in row.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def read(path: str, kinds: dict[str, str]) -> dict[str, list[Any]]:
    """All values, as tf.data parses them into ragged tensors."""
    types = {"int64": tf.int64, "float32": tf.float32, "string": tf.string}
    spec = {name: tf.io.RaggedFeature(types[kind]) for name, kind in kinds.items()}
    records = list(tf.data.TFRecordDataset(path, options(path)).as_numpy_iterator())
    parsed = tf.io.parse_example(records, spec)
    return {name: decoded(parsed[name].to_list()) for name in kinds}


def decoded(values: Any) -> Any:
    if isinstance(values, list):
        return [decoded(value) for value in values]
    return values.decode() if isinstance(values, bytes) else values


if __name__ == "__main__":
    task = json.load(sys.stdin)
    function = {"write": write, "read": read}[task.pop("do")]
    json.dump(function(**task), sys.stdout)
