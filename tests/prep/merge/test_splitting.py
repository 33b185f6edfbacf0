"""Samples of a store in train, val and test."""

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.prep.merge.splits import exact_counts
from penstock.readers.batch_files import save_batch
from penstock.readers.store_manifest import InputRecord, Manifest
from penstock.readers.store_schema import ArraySpec, StoreSchema
from tests.prep.merge.inputs import all_bytes, concatenated, load_split, write_batches

SIZES = (40, 25, 60, 0, 75)


def split_store(tmp_path, splits, seed=0, name="out", **more):
    options = MergeOptions(splits=splits, seed=seed, **more)
    result = merge(tmp_path / "in", tmp_path / name, options=options)
    return {split: load_split(tmp_path / name, split) for split in result.num_samples}


def rows(arrays):
    """Samples as sortable tuples of their bytes."""
    return [
        tuple(array[place].tobytes() for array in arrays.values())
        for place in range(len(arrays["labels_target"]))
    ]


@pytest.mark.parametrize("layout", ["native", "npz"])
def test_shares_by_sample_are_exact_and_keep_the_order(tmp_path, layout):
    every = rows(concatenated(write_batches(tmp_path / "in", SIZES, layout=layout)))

    store = split_store(tmp_path, SplitShares(0.7, 0.2, 0.1))

    assert {split: len(rows(arrays)) for split, arrays in store.items()} == {
        "train": 140,
        "val": 40,
        "test": 20,
    }
    assert sorted(row for arrays in store.values() for row in rows(arrays)) == sorted(every)
    for arrays in store.values():
        places = [every.index(row) for row in rows(arrays)]
        assert places == sorted(places)


def test_a_seed_decides_and_another_gives_other_splits(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    splits = SplitShares(0.5, 0.5, 0)

    first = split_store(tmp_path, splits, seed=1, name="first")
    again = split_store(tmp_path, splits, seed=1, name="again")
    other = split_store(tmp_path, splits, seed=2, name="other")

    assert list(first) == ["train", "val"]
    assert rows(first["val"]) == rows(again["val"]) != rows(other["val"])


def test_groups_stay_together(tmp_path):
    every = concatenated(write_batches(tmp_path / "in", SIZES, groups=True))
    groups = every.pop("groups")

    store = split_store(tmp_path, SplitShares(0.5, 0.3, 0.2, by="group"), seed=3)

    group_of = dict(zip(rows(every), groups.tolist(), strict=True))
    found = {split: {group_of[row] for row in rows(arrays)} for split, arrays in store.items()}
    assert sum(len(groups) for groups in found.values()) == len(set(groups.tolist()))
    assert "groups" not in store["train"]


def test_without_groups_nothing_can_be_kept_together(tmp_path):
    write_batches(tmp_path / "in")

    with pytest.raises(DataError, match=r"has no array 'groups'.*splits.group_key"):
        split_store(tmp_path, SplitShares(by="group"))


def test_a_batch_file_is_a_file_where_no_manifest_tells_more(tmp_path):
    batches = write_batches(tmp_path / "in", [10] * 10)

    store = split_store(tmp_path, SplitShares(by="file"))

    assert {split: len(rows(arrays)) for split, arrays in store.items()} == {
        "train": 80,
        "val": 10,
        "test": 10,
    }
    assert rows(store["val"]) in [rows(arrays) for arrays in batches]


def test_input_files_of_the_manifest_stay_together(tmp_path):
    """Three input files of 6, 6 and 3 samples in batches of five: the second batch has samples of two files."""
    (tmp_path / "in").mkdir()
    sources = np.repeat(np.arange(3, dtype=np.int16), [6, 6, 3])
    records = [
        save_batch(
            tmp_path / "in" / f"batch_{place}.batch", {"labels_source": sources[5 * place : 5 * place + 5]}
        )
        for place in range(3)
    ]
    inputs = tuple(
        InputRecord(f"{name}.csv", 1, 1, num_samples=count)
        for name, count in {"a": 6, "b": 6, "c": 3}.items()
    )
    schema = StoreSchema((ArraySpec("labels_source", np.dtype(np.int16)),))
    Manifest(inputs, tuple(records), schema, {}).write(tmp_path / "in")

    merge(
        tmp_path / "in", tmp_path / "out", options=MergeOptions(splits=SplitShares(0.4, 0.4, 0.2, by="file"))
    )

    found = [
        set(np.load(tmp_path / "out" / f"labels_{split}.npz")["source"].tolist())
        for split in ("train", "val", "test")
    ]
    assert sorted(map(sorted, found)) == [[0], [1], [2]]


@pytest.mark.parametrize(
    "by", ["group", *(pytest.param(by, marks=pytest.mark.slow) for by in ("sample", "file"))]
)
def test_workers_and_compression_change_nothing(tmp_path, by):
    splits = SplitShares(0.6, 0.2, 0.2, by=by)
    write_batches(tmp_path / "in", SIZES, groups=True)
    split_store(tmp_path, splits, name="one")

    split_store(tmp_path, splits, name="two", workers=2, part_bytes=2000)

    assert all_bytes(tmp_path / "two") == all_bytes(tmp_path / "one")


def test_shares_must_add_up():
    with pytest.raises(
        ConfigError, match=r"splits: train, val and test are \(0.9, 0.1, 0.1\); they must add up to 1"
    ):
        SplitShares(0.9)


@pytest.mark.parametrize(
    ("total", "counts"), [(10, [8, 1, 1]), (3, [3, 0, 0]), (19, [15, 2, 2]), (0, [0, 0, 0])]
)
def test_counts_are_the_nearest(total, counts):
    assert list(exact_counts({"train": 0.8, "val": 0.1, "test": 0.1}, total).values()) == counts


@pytest.mark.parametrize("groups", [np.array([1.5, 2.5]), np.ones((2, 3), np.int64)])
@pytest.mark.parametrize("splits", [None, SplitShares(by="group")])
def test_an_array_of_the_user_that_is_called_groups_is_refused(tmp_path, groups, splits):
    (tmp_path / "in").mkdir()
    save_batch(tmp_path / "in" / "batch_0.batch", {"strategic_features": np.ones((2, 3)), "groups": groups})

    with pytest.raises(
        DataError, match=r"array 'groups' is .*; that name is for what keeps samples together"
    ):
        split_store(tmp_path, splits)


def test_groups_alone_are_no_store(tmp_path):
    (tmp_path / "in").mkdir()
    save_batch(tmp_path / "in" / "batch_0.batch", {"groups": np.arange(3)})

    with pytest.raises(DataError, match=r"has no array but 'groups', of which nothing is in a store"):
        split_store(tmp_path, None)
