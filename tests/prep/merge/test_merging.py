"""Batch files become one store, in their order or in a random one, through a bounded memory."""

import re

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB, parse_size
from penstock.prep.merge.batches import find_batches
from penstock.prep.merge.copy import plan_buckets
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.prep.merge.plan import plan_merge
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


WIDTH = 500


def write_numbered(folder, sizes, **how):
    """Samples that know their number, wide enough to need several buckets of a megabyte."""
    folder.mkdir()
    first = 0
    for place, size in enumerate(sizes):
        numbers = np.arange(first, first + size)
        features = np.repeat(numbers.astype(np.float32)[:, None], WIDTH, axis=1)
        arrays = {"strategic_features": features, "labels_number": numbers.astype(np.int32)}
        save_batch(folder / f"batch_{place:03d}.batch", arrays, **how)
        first += size


def test_too_little_memory_is_said_before_anything_is_written(tmp_path):
    write_numbered(tmp_path / "in", [4000])
    options = MergeOptions(shuffle=True, memory_bytes=MIB, workers=400)

    message = (
        r"memory.limit: leaves 1MiB to the shuffle \(memory_bytes\), but for 7\.7MiB in 400 processes it takes "
        "98.2MiB; raise it, or lower merge_workers"
    )
    with pytest.raises(ConfigError, match=message):
        merge(tmp_path / "in", tmp_path / "out", options=options)

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("part_bytes", "splits"), [(MIB, None), (1, SplitShares())])
def test_as_much_memory_as_was_said_is_enough(tmp_path, part_bytes, splits):
    write_numbered(tmp_path / "in", [400] * 10)
    batches = find_batches(tmp_path / "in")
    how = {"shuffle": True, "workers": 400, "part_bytes": part_bytes, "splits": splits}
    with pytest.raises(ConfigError) as told:
        plan_buckets(plan_merge(batches, MergeOptions(memory_bytes=MIB, **how)))

    enough_bytes = parse_size(re.search(r"it takes (\S+);", str(told.value))[1])

    buckets = plan_buckets(plan_merge(batches, MergeOptions(memory_bytes=enough_bytes, **how)))

    assert len(buckets.ends) > 1
