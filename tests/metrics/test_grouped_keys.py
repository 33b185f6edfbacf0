"""Ids of any kind become the same keys, wherever they come from."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from penstock.config.errors import DataError
from penstock.metrics.grouped_keys import group_keys

IDS = [3, -1, 3, 2**40]


def keys_of(groups):
    return group_keys(groups, "grouped_auc").tolist()


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        np.array(IDS),
        torch.tensor(IDS),
        pa.array(IDS),
        pa.chunked_array([IDS[:1], IDS[1:]]),
        pa.array(IDS).dictionary_encode(),
    ],
    ids=["list", "numpy", "torch", "arrow", "chunked", "dictionary"],
)
def test_integers_are_their_own_keys(ids):
    assert keys_of(ids) == [3, 2**64 - 1, 3, 2**40]


def test_integers_of_any_width_are_the_same_keys():
    narrow = np.array([5, -7], np.int8)

    assert keys_of(narrow) == keys_of(narrow.astype(np.int64)) == keys_of(pa.array([5, -7], pa.int16()))


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        lambda texts: np.array(texts, dtype=object),
        lambda texts: pa.array(texts, pa.string()),
        lambda texts: pa.array(texts, pa.large_string()),
        lambda texts: pa.array(["before", *texts]).slice(1),
        lambda texts: pa.array(texts).dictionary_encode(),
    ],
    ids=["list", "numpy", "objects", "string", "large string", "slice", "dictionary"],
)
def test_texts_are_hashed_by_their_characters(make):
    texts = ["user-1", "", "user-1", "é", "user-2"]
    keys = keys_of(make(texts))

    assert keys == keys_of(texts)
    assert keys[0] == keys[2]
    assert len(set(keys)) == 4


def test_nulls_are_one_group():
    for ids in (pa.array([1, None, 0, None]), pa.array(["a", None, "", None])):
        keys = keys_of(ids)
        assert keys[1] == keys[3]
        assert len(set(keys)) == 3


def test_ids_of_two_kinds_are_refused():
    with pytest.raises(DataError, match="grouped_auc: the groups are not ids of one kind"):
        keys_of(["a", 1])
