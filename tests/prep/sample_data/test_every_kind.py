"""What holds for every kind of sample data that has rows, and for each. A new kind is one more row of EVERY_KIND."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score

from penstock.prep.sample_data.blocks import BLOCK_ROWS, KINDS, pieces, read_summary
from penstock.prep.sample_data.clicks import MAX_LENGTH
from penstock.prep.sample_data.write import write_sample_data

EVERY_KIND = {"clicks": ["click", "buy"], "criteo": ["label"]}
"""Kind -> its binary labels."""
RAW_KINDS = ["game"]
"""Kinds whose files are still to be prepared; test_game.py tells what holds for them."""

every_kind = pytest.mark.parametrize("kind", EVERY_KIND)


def rows_of(directory: Path, *splits: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(directory / split) for split in splits])


def test_every_kind_is_tested():
    assert list(KINDS) == [*EVERY_KIND, *RAW_KINDS]


@every_kind
def test_rows_do_not_depend_on_files_row_groups_splits_or_their_number(kind, tmp_path):
    num_rows = BLOCK_ROWS + 500
    write_sample_data(kind, num_rows, tmp_path / "few")
    write_sample_data(
        kind, num_rows + 100, tmp_path / "many", num_files=3, row_group_rows=777, splits={"all": 1.0}
    )

    assert rows_of(tmp_path / "many", "all").slice(0, num_rows) == rows_of(tmp_path / "few", "train", "test")


@every_kind
def test_attainable_auc_is_the_auc_of_the_true_probabilities(kind, tmp_path):
    summary = write_sample_data(kind, 20_000, tmp_path / "out", with_truth=True)

    assert list(summary.splits["test"].labels)[: len(EVERY_KIND[kind])] == EVERY_KIND[kind]
    for split in ("train", "test"):
        rows = rows_of(tmp_path / "out", split)
        for label in EVERY_KIND[kind]:
            labels, truth = rows[label].to_numpy(), rows[f"true_{label}_prob"].to_numpy()
            found = summary.splits[split].labels[label]
            assert found.mean == pytest.approx(labels.mean())
            assert found.attainable_auc == pytest.approx(roc_auc_score(labels, truth), abs=1e-5)


@every_kind
def test_labels_are_drawn_with_the_true_probabilities(kind):
    blocks = list(pieces(KINDS.get(kind)(0).block, 0, 5 * BLOCK_ROWS))

    for label in EVERY_KIND[kind]:
        truth = np.concatenate([block.probabilities[label] for block in blocks])
        labels = np.concatenate([block.rows[label].to_numpy() for block in blocks])
        for tenth in np.array_split(np.argsort(truth), 10):
            assert labels[tenth].mean() == pytest.approx(truth[tenth].mean(), abs=0.02)


@every_kind
def test_the_summary_is_kept_beside_the_files(kind, tmp_path):
    summary = write_sample_data(kind, 500, tmp_path / "out")

    assert read_summary(tmp_path / "out") == summary
    for split in summary.splits.values():
        assert sum(pq.read_metadata(tmp_path / "out" / file).num_rows for file in split.files) == split.rows


@pytest.fixture(scope="module")
def clicks(tmp_path_factory) -> pa.Table:
    out = tmp_path_factory.mktemp("clicks") / "out"
    write_sample_data("clicks", 30_000, out, splits={"all": 1.0})
    return pq.read_table(out / "all")


def seconds(clicks: pa.Table) -> np.ndarray:
    return clicks["event_time"].cast(pa.int64()).to_numpy() // 1000


def test_cost_is_one_more_than_the_length_of_the_history(clicks):
    lengths = pc.list_value_length(clicks["click_seq"])

    assert lengths == pc.list_value_length(clicks["click_time_seq"])
    assert clicks["cost"].to_pylist() == [length + 1 for length in lengths.to_pylist()]
    assert pc.min_max(lengths).as_py() == {"min": 0, "max": MAX_LENGTH - 1}


def test_history_is_in_order_and_before_now(clicks):
    lengths = pc.list_value_length(clicks["click_time_seq"]).to_numpy()
    times = pc.list_flatten(clicks["click_time_seq"]).to_numpy()
    row = np.repeat(np.arange(len(clicks)), lengths)

    assert (times < seconds(clicks)[row]).all()
    assert (np.diff(times)[np.diff(row) == 0] > 0).all()


def test_buy_and_watch_time_only_after_a_click(clicks):
    click, buy, watched = (clicks[name].to_numpy() for name in ("click", "buy", "watch_seconds"))

    assert (click[buy == 1] == 1).all()
    assert ((watched > 0) == (click == 1)).all()
