"""Rows of groups stay together, in memory and on disk."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import BudgetExceeded
from penstock.metrics.spool import NUM_PARTS, GroupRows, by_rank, rows_of


def some_rows(num_rows, num_groups=50, seed=0, dtype=np.float32):
    generator = np.random.default_rng(seed)
    keys = generator.integers(0, num_groups, num_rows).astype(np.uint64)
    return rows_of(keys, generator.random(num_rows, dtype=np.float32).astype(dtype), keys % 2 == 0)


def filled(rows, batch_rows, **options):
    store = GroupRows(**options)
    for start in range(0, len(rows), batch_rows):
        store.add(rows[start : start + batch_rows])
    return store


def in_order(rows):
    return np.sort(rows.astype(rows.dtype.newbyteorder("="))).tolist()


@pytest.fixture(params=["loose", "blocks", "spilled"])
def options(request, monkeypatch, tmp_path):
    if request.param == "blocks":
        monkeypatch.setattr("penstock.metrics.spool._BLOCK_ROWS", 100)
    return {"limit_bytes": 3000 if request.param == "spilled" else 1 << 20, "folder": tmp_path}


def test_parts_are_all_rows_of_any_precision_and_no_group_is_in_two(options):
    rows = some_rows(1000)
    wide = some_rows(300, seed=1, dtype=np.float64)
    store = filled(rows, 70, **options)
    store.add(wide)
    both, num_groups = np.concatenate([rows, wide]), len(np.unique(rows["key"]))
    assert store.held_bytes <= options["limit_bytes"]

    parts = list(copy.deepcopy(store).parts())

    assert len(parts) == NUM_PARTS
    assert in_order(np.concatenate(parts)) == in_order(store.whole()) == in_order(both)
    assert sum(len(np.unique(part["key"])) for part in parts) == num_groups
    assert store.num_rows == 1300
    store.clear()
    assert (store.num_rows, store.num_bytes, len(store.whole())) == (0, 0, 0)


def test_a_disk_that_cannot_be_written_is_named(tmp_path):
    store = filled(some_rows(400), 100, limit_bytes=3000, folder=tmp_path)
    (folder,) = tmp_path.iterdir()
    for file in folder.iterdir():
        file.unlink()
        file.mkdir()

    with pytest.raises(
        BudgetExceeded, match=r"of grouped rows do not fit there .*; set TMPDIR to a folder with room"
    ):
        store.add(some_rows(400))
    store.clear()


@settings(max_examples=30)
@given(st.integers(0, 200), st.integers(1, 7))
def test_every_rank_gets_whole_groups(num_rows, num_ranks):
    rows = some_rows(num_rows)
    sent = by_rank(rows, num_ranks)

    assert in_order(np.concatenate(sent)) == in_order(rows)
    assert sum(len(np.unique(part["key"])) for part in sent) == len(np.unique(rows["key"]))
