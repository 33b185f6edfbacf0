"""Rows of tables that grow: who gets one, who loses one, and what a checkpoint keeps."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import ConfigError
from penstock.features.sections.tables import DynamicEmbedding, ZeroCollisionHash
from penstock.models.growing import GrowingTable


def zch(size, **options):
    return GrowingTable(
        ZeroCollisionHash.model_validate({"zch_size": size, "eviction_interval": 1, **options})
    )


def grow(table, *keys):
    return table.grow(np.array(keys, np.int64)).tolist()


def known(table, *keys):
    return [bool(row) for row in table.rows_of(np.array(keys, np.int64))]


def test_new_keys_get_rows_and_keep_them():
    table = zch(4)

    first = grow(table, 70, 80, 70)

    assert first[0] == first[2] != first[1]
    assert grow(table, 80, 90, 70)[::2] == [first[1], first[0]]
    assert table.rows_of(np.array([80, 12345])).tolist() == [first[1], 0]


def test_a_full_table_gives_the_row_of_the_key_seen_least():
    table, evicted = zch(3), []
    table.on_evict = lambda rows, step: evicted.extend(rows.tolist())
    [_often, seldom] = grow(table, 1, 2)
    grow(table, 1, 1)

    assert grow(table, 3, 3, 3) == [seldom] * 3
    assert evicted == [seldom]
    assert known(table, 1, 2, 3) == [True, False, True]


def test_the_longest_unseen_key_leaves_first():
    table = zch(3, lru={})
    grow(table, 1, 1, 1, 2)
    grow(table, 2)
    grow(table, 3)

    assert known(table, 1, 2, 3) == [False, True, True]


def test_keys_without_a_row_share_row_0_until_they_are_seen_often_enough():
    table = zch(10, threshold_filtering_func="lambda x: (x > 1, 1)")

    assert grow(table, 5) == [0]
    assert grow(table, 5) != [0]


def test_evaluation_changes_nothing():
    table = zch(4)
    grow(table, 1)
    before = {name: tensor.clone() for name, tensor in table.state_dict().items()}

    table.rows_of(np.array([1, 2, 3]))

    assert all(torch.equal(before[name], tensor) for name, tensor in table.state_dict().items())


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(-5, 12), min_size=1, max_size=8), min_size=2, max_size=12),
    st.integers(1, 3),
    st.sampled_from([{}, {"lru": {}}, {"distance_lfu": {"decay_exponent": 0.5}}]),
)
def test_a_saved_table_goes_on_as_if_nothing_had_happened(batches, threshold, policy):
    options = {"eviction_interval": 2, "threshold_filtering_func": f"lambda x: x >= {threshold}", **policy}
    whole, before, after = (zch(5, **options) for _ in range(3))
    expected = [grow(whole, *batch) for batch in batches]
    middle = len(batches) // 2
    found = [grow(before, *batch) for batch in batches[:middle]]
    after.load_state_dict(before.state_dict())

    assert found + [grow(after, *batch) for batch in batches[middle:]] == expected
    rows = {
        key: row
        for batch, of in zip(batches, expected, strict=True)
        for key, row in zip(batch, of, strict=True)
    }
    assert all(0 <= row < 5 for row in rows.values())


def test_dynamic_embedding_admits_by_frequency():
    table = GrowingTable(
        DynamicEmbedding.model_validate(
            {"max_capacity": 4, "score_strategy": "LFU", "frequency_admission_strategy": {"threshold": 2}}
        )
    )

    assert grow(table, 7) == [0]
    assert grow(table, 7) != [0]


def test_a_rule_that_is_not_understood():
    with pytest.raises(ConfigError) as caught:
        zch(3, threshold_filtering_func="import os")

    assert str(caught.value) == (
        "zch.threshold_filtering_func: is not understood; write such as 'lambda x: x > 3': seen more than 3 times"
    )
