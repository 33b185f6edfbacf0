"""Files of TensorFlow open here; that ours open there is a case of tests/library."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.readers.tfrecord_samples import read

TYPES = {"one": "int64", "many": "int64", "number": "float32", "numbers": "float32"}
TYPES |= {"text": "string", "texts": "string"}
SINGLE = ("one", "number", "text")
ROWS: list[dict[str, list[Any]]] = [
    {"one": [1], "many": [1, -1, 2**62], "number": [0.5], "numbers": [1.5, -2.5], "texts": ["b", "ö" * 200]},
    {"one": [-(2**63)], "many": [], "number": [3.0], "numbers": [], "text": [""], "texts": []},
    {"one": [2**63 - 1], "many": [300] * 200, "number": [-0.0], "text": ["x" * 1000], "texts": ["", ""]},
    {},
]
# In a process of its own: TensorFlow brings threads, and a registry of messages.
WRITE = f"""
import sys, tensorflow as tf
lists = {{
    "int64": lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
    "float32": lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
    "string": lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=[v.encode() for v in values])),
}}
for path in sys.argv[1:]:
    with tf.io.TFRecordWriter(path, "GZIP" if path.endswith(".gz") else "") as writer:
        for row in {ROWS!r}:
            features = {{name: lists[{TYPES!r}[name]](values) for name, values in row.items()}}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
"""


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("tensorflow"), reason="install the extra `tf`")
def test_files_of_tensorflow_open_here(tmp_path: Path):
    paths = [tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.gz"]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", WRITE, *map(str, paths)], check=True, env=environment)
    lists = {name: [row.get(name, []) for row in ROWS] for name in TYPES}
    for name in SINGLE:
        lists[name] = [values[0] if values else None for values in lists[name]]
    schema = {name: kind if name in SINGLE else [kind] for name, kind in TYPES.items()}

    for path in paths:
        assert read(path, schema).to_pydict() == lists
        assert read(path, columns=list(TYPES)).to_pydict() == lists
