"""Files of ours open in TensorFlow, and files of TensorFlow open here.

TensorFlow runs in a process of its own, so that it disturbs no other test.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.readers.tfrecord_write import write_tfrecord
from tests.readers.tfrecord_samples import read

SIDE = Path(__file__).with_name("tensorflow_side.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not importlib.util.find_spec("tensorflow"), reason="no tensorflow; install the extra `tf`"
    ),
]

KINDS = {
    "one": "int64",
    "many": "int64",
    "number": "float32",
    "numbers": "float32",
    "text": "string",
    "texts": "string",
}
ROWS: list[dict[str, list[Any]]] = [
    {
        "one": [1],
        "many": [1, -1, 2**62],
        "number": [0.5],
        "numbers": [1.5, -2.5],
        "text": ["a"],
        "texts": ["b", "ö" * 200],
    },
    {"one": [-(2**63)], "many": [], "number": [3.0], "numbers": [], "text": [""], "texts": []},
    {
        "one": [2**63 - 1],
        "many": [300] * 200,
        "number": [-0.0],
        "numbers": [1.0] * 50,
        "text": ["x" * 1000],
        "texts": ["", ""],
    },
    {},
]
SCHEMA = {name: kind if name in ("one", "number", "text") else [kind] for name, kind in KINDS.items()}


def tensorflow(**task: Any) -> Any:
    done = subprocess.run(
        [sys.executable, str(SIDE)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected_column(name: str) -> list[Any]:
    """What a column holds here: one value or null, or a list."""
    lists = [row.get(name, []) for row in ROWS]
    return lists if isinstance(SCHEMA[name], list) else [values[0] if values else None for values in lists]


@pytest.mark.parametrize("suffix", [".tfrecord", ".tfrecord.gz"])
def test_files_of_tensorflow_open_here(tmp_path: Path, suffix: str):
    path = tmp_path / f"a{suffix}"
    tensorflow(do="write", path=str(path), kinds=KINDS, rows=ROWS)
    expected = {name: expected_column(name) for name in KINDS}

    assert read(path, SCHEMA).to_pydict() == expected
    assert read(path, columns=list(KINDS)).to_pydict() == expected


@pytest.mark.parametrize("suffix", [".tfrecord", ".tfrecord.gz"])
def test_our_files_open_in_tensorflow(tmp_path: Path, suffix: str):
    path = tmp_path / f"a{suffix}"
    types = {"int64": pa.int64(), "float32": pa.float32(), "string": pa.string()}
    arrays = {
        name: pa.array(
            expected_column(name), pa.list_(types[kind]) if isinstance(SCHEMA[name], list) else types[kind]
        )
        for name, kind in KINDS.items()
    }
    write_tfrecord(path, pa.table(arrays))

    assert tensorflow(do="read", path=str(path), kinds=KINDS) == {
        name: [row.get(name, []) for row in ROWS] for name in KINDS
    }
