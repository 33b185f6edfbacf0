"""Ids of groups from their keys."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from penstock.metrics.group_names import GroupNames
from penstock.metrics.grouped_keys import group_keys


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (np.array([-3, 7]), [-3, 7]),
        (np.array([2**64 - 1], np.uint64), [2**64 - 1]),
        (torch.tensor([5, -1]), [5, -1]),
        ([4, 9], [4, 9]),
        (np.array([True, False]), [1, 0]),
        (pa.array([True, False]), ["True", "False"]),
        (pa.array([4, None]), [4, "null"]),
        (pa.array(["anna", None]), ["anna", "null"]),
        (pa.chunked_array([["anna"], ["bob"]]), ["anna", "bob"]),
        (pa.array(["anna", "bob"]).dictionary_encode(), ["anna", "bob"]),
        (np.array(["anna", "bob"]), ["anna", "bob"]),
    ],
)
def test_ids_that_were_seen_are_known_again(groups, names):
    known = GroupNames()
    known.see(groups)

    assert known.of(group_keys(groups, "test").tolist()) == names


def test_a_text_beyond_the_rows_that_are_remembered_is_called_by_its_hash():
    known = GroupNames(most_rows=1)
    texts = pa.array(["anna", "bob"])
    known.see(texts)
    known.see(texts)
    keys = group_keys(texts, "test").tolist()

    assert known.of(keys) == ["anna", f"{keys[1]:#018x}"]


def test_two_know_together_what_each_has_seen():
    one, other = GroupNames(), GroupNames()
    one.see(["anna"])
    other.see(["bob"])

    assert one.joined(other).of(group_keys(["anna", "bob"], "test").tolist()) == ["anna", "bob"]
