"""Samples of a store in train, val and test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.prep.merge.plan import _CHUNK_ROWS, KeyStream, files_to_splits
from penstock.readers.batch_files import save_batch
from penstock.readers.store_schema import ArraySpec, InputRecord, StoreManifest, StoreSchema
from tests.prep.merge.inputs import concatenated, load_split, write_batches

SIZES = (40, 25, 60, 0, 75)
NO_INPUTS = "splits by file: no manifest.json tells which input files samples are of: each batch file is one"


def split_store(tmp_path, splits, seed=0, name="out", **more):
    options = MergeOptions(splits=splits, seed=seed, **more)
    result = merge(tmp_path / "in", tmp_path / name, options=options)
    return {split: load_split(tmp_path / name, split) for split in result.num_samples}


def rows(arrays):
    return [
        tuple(array[row].tobytes() for array in arrays.values())
        for row in range(len(arrays["labels_target"]))
    ]


def num_rows(store):
    return {split: len(arrays["labels_target"]) for split, arrays in store.items()}


def test_shares_by_sample_are_exact_and_keep_the_order(tmp_path):
    every = rows(concatenated(write_batches(tmp_path / "in", SIZES)))

    store = split_store(tmp_path, SplitShares(0.7, 0.2, 0.1))

    assert num_rows(store) == {"train": 140, "val": 40, "test": 20}
    assert sorted(row for arrays in store.values() for row in rows(arrays)) == sorted(every)
    for arrays in store.values():
        positions = [every.index(row) for row in rows(arrays)]
        assert positions == sorted(positions)


def test_groups_stay_together(tmp_path):
    every = concatenated(write_batches(tmp_path / "in", SIZES, groups=True))
    groups = every.pop("groups")

    store = split_store(tmp_path, SplitShares(0.5, 0.3, 0.2, by="group"), seed=3)

    group_of = dict(zip(rows(every), groups.tolist(), strict=True))
    found = {split: {group_of[row] for row in rows(arrays)} for split, arrays in store.items()}
    assert sum(len(groups) for groups in found.values()) == len(set(groups.tolist()))
    assert "groups" not in store["train"]


def test_input_files_of_the_manifest_stay_together(tmp_path):
    """Three input files of 6, 6 and 3 samples in batches of five: the second batch has samples of two files."""
    (tmp_path / "in").mkdir()
    sources = np.repeat(np.arange(3, dtype=np.int16), [6, 6, 3])
    records = [
        save_batch(tmp_path / "in" / f"batch_{number}.batch", {"labels_source": part})
        for number, part in enumerate(np.split(sources, 3))
    ]
    inputs = [InputRecord(f"{count}.csv", 1, 1, num_samples=count) for count in (6, 6, 3)]
    schema = StoreSchema((ArraySpec("labels_source", np.dtype(np.int16)),))
    StoreManifest(tuple(inputs), tuple(records), schema, {}).write(tmp_path / "in")
    options = MergeOptions(splits=SplitShares(0.4, 0.4, 0.2, by="file"))

    merge(tmp_path / "in", tmp_path / "out", options=options)

    found = [
        set(np.load(tmp_path / "out" / f"labels_{split}.npz")["source"].tolist())
        for split in ("train", "val", "test")
    ]
    assert sorted(map(sorted, found)) == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("arrays", "by", "message"),
    [
        ({"x": np.ones(2)}, "group", r"has no array 'groups'.*splits.group_key"),
        ({"x": np.ones(2), "groups": np.array([1.5, 2.5])}, "sample", "that name is for what keeps samples"),
        ({"x": np.ones(2), "groups": np.ones((2, 3), int)}, "group", "that name is for what keeps samples"),
        ({"groups": np.arange(3)}, "sample", "has no array but 'groups', of which nothing is in a store"),
    ],
)
def test_groups_that_cannot_be_used(tmp_path, arrays, by, message):
    (tmp_path / "in").mkdir()
    save_batch(tmp_path / "in" / "batch_0.batch", arrays)

    with pytest.raises(DataError, match=message):
        split_store(tmp_path, SplitShares(by=by))


@pytest.mark.parametrize(
    ("sizes", "splits", "groups", "lines"),
    [
        ([20, 20], SplitShares(), False, []),
        (
            [20, 20, 20],
            SplitShares(by="file"),
            False,
            [
                NO_INPUTS,
                "split test is empty: there are too few input files (3); give more, or split by sample",
                "shares by file are train 0.67, val 0.33, test 0.00, not 0.8, 0.1, 0.1: too few files to come nearer",
            ],
        ),
        (
            [4],
            SplitShares(0.95, 0.05, 0),
            False,
            [
                "split val is empty: its share of 4 samples is less than one",
                "shares by sample are train 1.00, val 0.00, not 0.95, 0.05: too few samples to come nearer",
            ],
        ),
        (
            [50, 50],
            SplitShares(by="group"),
            True,
            [
                "shares by group are train 0.65, val 0.22, test 0.13, not 0.8, 0.1, 0.1: too few groups to come nearer"
            ],
        ),
        (
            [20, 20],
            None,
            True,
            ["array 'groups' is left out: it only tells splits by group which samples stay together"],
        ),
    ],
)
def test_splits_that_are_not_what_was_asked_for_give_warnings(tmp_path, caplog, sizes, splits, groups, lines):
    write_batches(tmp_path / "in", sizes, groups=groups)

    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(splits=splits))

    assert [record.message for record in caplog.records] == lines


def counts_of(sizes, shares, seed=0):
    num_samples = np.array(sizes, np.int64)
    splits = files_to_splits(num_samples, shares, KeyStream("split by file", seed))
    return [int(num_samples[splits == split].sum()) for split in range(len(shares))]


SHARES = st.lists(st.integers(1, 100), min_size=1, max_size=3).map(
    lambda parts: [part / sum(parts) for part in parts]
)


@given(st.lists(st.integers(0, 1000), max_size=40), SHARES, st.integers(0, 50))
def test_every_split_is_within_the_largest_file_of_its_share(sizes, shares, seed):
    counts = counts_of(sizes, shares, seed)

    assert sum(counts) == sum(sizes)
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - share * sum(sizes)) <= max(sizes, default=0) + 1e-6


@pytest.mark.parametrize("num_rows", [1, 1000, 3 * _CHUNK_ROWS + 7])
@pytest.mark.parametrize("share", [0, 0.1, 0.999, 1])
def test_a_bound_has_exactly_so_many_keys_below(num_rows, share):
    keys, rank = KeyStream("test", 3), int(num_rows * share)

    bound = keys.bound(num_rows, rank)

    in_order = [*np.sort(keys.of_rows(0, num_rows)).tolist(), 1 << 64]
    assert in_order[rank] >= bound
    assert not rank or in_order[rank - 1] < bound
