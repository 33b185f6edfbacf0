"""Batch files become one store."""

import re

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions
from penstock.readers.batch_files import save_batch
from penstock.runtime.progress import ProgressLogger
from tests.prep.merge.inputs import load_split, write_batches
from tests.readers.batch_files.samples import assert_same


@pytest.mark.parametrize("layout", ["native", "npz"])
def test_arrays_of_any_type_and_nothing_at_all(tmp_path, layout):
    arrays = {
        "strategic_features": np.zeros((3, 0), np.float16),
        "labels_a": np.array([1, 2, 3], ">i4"),
        "masks_a": np.array([[True], [False], [True]]),
    }
    for number in range(2):
        save_batch(tmp_path / f"batch_{number}.{layout.replace('native', 'batch')}", arrays, layout=layout)

    merge(tmp_path, tmp_path / "out")

    expected = {name: np.concatenate([array, array]).astype(array.dtype) for name, array in arrays.items()}
    assert_same(load_split(tmp_path / "out"), expected)


def test_progress_counts_samples(tmp_path, capsys):
    write_batches(tmp_path / "in")

    with ProgressLogger("merging", "samples", plain=True) as progress:
        merge(tmp_path / "in", tmp_path / "out", progress=progress)

    assert "merging: samples 28/28" in capsys.readouterr().err


def test_a_store_among_its_batch_files(tmp_path):
    write_batches(tmp_path / "in")

    with pytest.raises(ConfigError, match="in: output_dir is also intermediate_dir; choose another folder"):
        merge(tmp_path / "in", tmp_path / "in")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"memory_bytes": 5},
            "memory.limit: leaves 5B to a shuffle (memory_bytes); it must be at least 1MiB",
        ),
        ({"compression": "zstd"}, "compression: zstd is not for target npy; known: none"),
        (
            {"target": "parquet", "compression": "zstd", "level": 99},
            "compression level is 99; zstd has 1 to 22",
        ),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        MergeOptions(**options)
