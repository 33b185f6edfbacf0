"""Whatever the batches and the options: every sample comes once, and both strategies give the same bytes."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.sizes import MIB
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import all_bytes

SHARES = st.sampled_from([(0.8, 0.1, 0.1), (1.0, 0.0, 0.0), (0.34, 0.33, 0.33), (0.0, 0.5, 0.5)])
SPLITS = st.none() | st.builds(
    lambda shares, by: SplitShares(*shares, by=by), SHARES, st.sampled_from(["sample", "group", "file"])
)
OPTIONS = st.builds(
    MergeOptions,
    splits=SPLITS,
    shuffle=st.booleans(),
    seed=st.integers(0, 5),
    heads=st.sampled_from(["npz", "npy"]),
    part_bytes=st.sampled_from([1, 100, MIB]),
)
BATCHES = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from([("native", "none"), ("native", "zstd"), ("npz", "none"), ("npz", "zlib")]),
    ),
    min_size=1,
    max_size=6,
)


def write(folder, batches):
    folder.mkdir()
    first = 0
    for place, (size, (layout, compression)) in enumerate(batches):
        numbers = np.arange(first, first + size)
        arrays = {
            "strategic_features": np.stack([numbers, -numbers], axis=1).astype(np.float32),
            "labels_number": numbers.astype(np.int32),
            "groups": (numbers // 3).astype(np.uint64),
        }
        suffix = {"native": ".batch", "npz": ".npz"}[layout]
        save_batch(folder / f"batch_{place}{suffix}", arrays, layout=layout, compression=compression)
        first += size
    return first


def numbers_of(store, split, heads):
    if heads == "npz":
        return np.load(store / f"labels_{split}.npz")["number"]
    return np.load(store / f"labels_{split}" / "number.npy")


@settings(max_examples=15)
@given(BATCHES, OPTIONS)
def test_every_sample_comes_once(batches, options):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        total = write(folder / "in", batches)

        result = merge(folder / "in", folder / "out", options=options)
        merge(folder / "in", folder / "accumulated", "accumulative", options=options)

        found = [numbers_of(folder / "out", split, options.heads) for split in result.num_samples]
        assert sorted(np.concatenate(found).tolist()) == list(range(total))
        assert [len(numbers) for numbers in found] == list(result.num_samples.values())
        for split, numbers in zip(result.num_samples, found, strict=True):
            features = np.load(folder / "out" / f"X_{split}.npy")
            np.testing.assert_array_equal(features, np.stack([numbers, -numbers], axis=1))
        assert all_bytes(folder / "accumulated") == all_bytes(folder / "out")
        assert verify(folder / "out", folder / "in") == []
