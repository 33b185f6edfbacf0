"""GroupedAUC against scikit-learn, group by group; keys and names of groups; groups on several ranks."""

import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from penstock.config.errors import BudgetExceeded
from penstock.metrics import grouped_auc
from penstock.metrics.grouped import group_keys
from penstock.metrics.grouped_auc import GroupedAUC, GroupNames
from penstock.metrics.xauc import GroupedXAUC
from penstock.runtime.world import Collectives, World
from tests.distributed.two_ranks import run_on_two_ranks

few_values = st.sampled_from([-math.inf, -3.0, -0.0, 0.0, 0.5, 0.5 + 1e-12, 1e300, math.inf])
some_rows = st.lists(st.tuples(few_values, st.booleans(), st.integers(-2, 4)), max_size=60)


def grouped_auc_of(preds, target, groups, **options):
    metric = GroupedAUC(**options)
    metric.update(preds, target, groups)
    return metric.compute()


def random_rows(num_rows, num_groups, seed=0):
    generator = np.random.default_rng(seed)
    preds = generator.integers(0, 20, num_rows).astype(np.float32) / 20
    return preds, generator.random(num_rows) < preds, generator.integers(0, num_groups, num_rows)


def groups_by_definition(preds, target, groups):
    """Id, rows, positives and area of each group; scikit-learn ranks values, so that infinities become large ones."""
    finite = np.searchsorted(np.unique(preds), preds)
    for group in np.unique(groups):
        labels = target[groups == group]
        both = labels.any() and not labels.all()
        area = roc_auc_score(labels, finite[groups == group]) if both else None
        yield int(group), len(labels), labels.sum(), area


def by_definition(*rows, weight="none"):
    found = [
        (area, {"none": 1, "rows": num_rows, "positives": num_positives}[weight])
        for _, num_rows, num_positives, area in groups_by_definition(*rows)
        if area is not None
    ]
    areas, weights = zip(*found, strict=True) if found else ([math.nan], [1])
    return np.average(areas, weights=weights)


@pytest.mark.parametrize("weight", ["none", "rows", "positives"])
@pytest.mark.parametrize(
    "first_id", [0, -30, 2**40, 2**63 - 60], ids=["narrow", "negative", "wide", "widest"]
)
def test_every_group_is_exact_with_ties_half(weight, first_id, monkeypatch):
    monkeypatch.setattr("penstock.metrics.spool._BLOCK_ROWS", 100)
    preds, target, groups = random_rows(1500, 60)
    rows = preds, target, groups + first_id

    expected = pytest.approx(by_definition(*rows, weight=weight), abs=1e-12)
    assert grouped_auc_of(*rows, weight=weight) == expected


@settings(max_examples=40)
@given(some_rows)
def test_infinite_close_and_equal_predictions_rank_as_they_are(rows):
    columns = [
        np.array([row[index] for row in rows], dtype) for index, dtype in enumerate((float, bool, int))
    ]

    expected = pytest.approx(by_definition(*columns), abs=1e-12, nan_ok=True)
    assert grouped_auc_of(*columns) == expected


def test_float32_predictions_keep_their_order_below_zero():
    preds = np.array([-2, -1, -0.0, 0.0, 1, 2], np.float32)

    assert grouped_auc_of(preds, [0, 0, 1, 0, 1, 1], np.zeros(6, int)) == (9 - 0.5) / 9


def test_rows_beyond_the_limit_go_to_disk_and_leave_with_the_metric(tmp_path):
    preds, target, groups = random_rows(5000, 60)
    metric = GroupedAUC(limit_bytes=10_000, folder=tmp_path)
    for start in range(0, 5000, 500):
        rows = slice(start, start + 500)
        values = preds[rows] if start < 2500 else preds[rows].astype(np.float64)
        metric.update(values, target[rows], groups[rows])

    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) > 40_000
    assert metric.compute() == pytest.approx(by_definition(preds, target, groups), abs=1e-12)
    metric.update(preds, target, groups)
    twice = (np.tile(column, 2) for column in (preds, target, groups))
    assert metric.compute() == pytest.approx(by_definition(*twice), abs=1e-12)
    metric.reset()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_is_named(tmp_path):
    metric = GroupedAUC(limit_bytes=3000, folder=tmp_path)
    metric.update(*random_rows(400, 50))
    (folder,) = tmp_path.iterdir()
    for file in folder.iterdir():
        file.unlink()
        file.mkdir()

    with pytest.raises(
        BudgetExceeded, match=r"of grouped rows do not fit there .*; set TMPDIR to a folder with more space"
    ):
        metric.update(*random_rows(400, 50))
    metric.reset()


def test_a_forgotten_metric_leaves_no_files(tmp_path):
    metric = GroupedAUC(limit_bytes=100, folder=tmp_path)
    metric.update(*random_rows(100, 10))
    assert len(list(tmp_path.iterdir())) == 1

    with pytest.warns(ResourceWarning, match="penstock-metrics-"):
        del metric

    assert list(tmp_path.iterdir()) == []


def rows_of_users():
    preds, target, groups = random_rows(500, 40)
    return preds, target, np.array([f"user-{number}" for number in groups])


def evaluate_on_a_rank(world: World, collectives: Collectives, limit_bytes: int) -> list[float]:
    """The first rank has a tenth of the rows, as float32, the second the others, as float64."""
    part = slice(0, 50) if world.rank == 0 else slice(50, 500)
    preds, target, groups = (column[part] for column in rows_of_users())
    values = []
    for make in (GroupedAUC, GroupedXAUC):
        metric = make(limit_bytes=limit_bytes)
        metric.update(preds.astype(np.float64) if world.rank else preds, target, groups)
        values.append(metric.reduced(collectives).compute())
        metric.reset()
    return values


@pytest.mark.slow
def test_two_processes_agree_with_one():
    expected = []
    for metric in (GroupedAUC(), GroupedXAUC()):
        metric.update(*rows_of_users())
        expected.append(pytest.approx(metric.compute(), abs=1e-12))

    assert run_on_two_ranks(evaluate_on_a_rank, 1000) == [expected, expected]


@pytest.mark.parametrize("limit_bytes", [1 << 20, 1000], ids=["in memory", "on disk"])
def test_the_largest_groups_come_first_and_one_class_has_no_area(limit_bytes, tmp_path):
    generator = np.random.default_rng(0)
    preds, groups = generator.random(2000), generator.geometric(0.02, 2000)
    target = generator.random(2000) < preds
    metric = GroupedAUC(limit_bytes=limit_bytes, folder=tmp_path)
    for rows in np.split(np.arange(2000), 20):
        metric.update(preds[rows], target[rows], groups[rows])

    expected = [
        (group, num_rows, area if area is None else pytest.approx(area, abs=1e-12))
        for group, num_rows, _, area in groups_by_definition(preds, target, groups)
    ]
    assert metric.largest_groups(20) == sorted(expected, key=lambda group: (-group[1], group[0]))[:20]
    metric.reset()


def test_a_merged_metric_knows_the_groups_of_both():
    one, other = GroupedAUC(), GroupedAUC()
    one.update([0.1, 0.9, 0.5], [0, 1, 1], ["a", "a", "c"])
    other.update([0.9, 0.2, 0.1], [0, 1, 1], ["b", "b", "b"])
    one.merge(other)

    assert one.largest_groups(5) == [("b", 3, 0.0), ("a", 2, 1.0), ("c", 1, None)]


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (np.array([2**64 - 1], np.uint64), [2**64 - 1]),
        (torch.tensor([5, -1]), [5, -1]),
        (pa.array([True, False]), ["True", "False"]),
        (pa.array([4, None]), [4, "null"]),
        (pa.chunked_array([["anna"], ["bob"]]), ["anna", "bob"]),
        (pa.array(["anna", "bob"]).dictionary_encode(), ["anna", "bob"]),
    ],
)
def test_ids_that_were_seen_are_known_again(groups, names):
    known = GroupNames()
    known.add(groups)

    assert known.of(group_keys(groups, "test").tolist()) == names


def test_a_string_beyond_the_rows_that_are_remembered_is_called_by_its_hash(monkeypatch):
    monkeypatch.setattr(grouped_auc, "MAX_NAMED_ROWS", 1)
    known, strings = GroupNames(), pa.array(["anna", "bob"])
    known.add(strings)
    known.add(strings)
    keys = group_keys(strings, "test").tolist()

    assert known.of(keys) == ["anna", f"{keys[1]:#018x}"]


def test_strings_are_hashed_by_their_characters():
    strings = ["user-1", "", "user-1", "é", "user-2"]
    keys = group_keys(np.array(strings), "test").tolist()

    assert (keys[0], len(set(keys))) == (keys[2], 4)
    for same in (strings, np.array(strings, dtype=object), pa.array(["before", *strings]).slice(1)):
        assert group_keys(same, "test").tolist() == keys
