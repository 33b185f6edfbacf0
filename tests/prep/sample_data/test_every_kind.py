"""What holds for every kind of sample data that has rows. A new kind is one more row of EVERY_KIND."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score

from penstock.prep.sample_data.blocks import BLOCK_ROWS, KINDS, sample_blocks
from penstock.prep.sample_data.summary import AttainableError, read_summary
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
def test_the_same_arguments_give_the_same_bytes(kind, tmp_path):
    for name in ("first", "second"):
        write_sample_data(kind, 300, tmp_path / name)

    for file in sorted((tmp_path / "first").rglob("part-*")):
        other = tmp_path / "second" / file.relative_to(tmp_path / "first")
        assert file.read_bytes() == other.read_bytes()


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
@pytest.mark.parametrize("seed", range(3))
def test_every_seed_is_about_equally_hard(kind, seed):
    block = KINDS.get(kind)(seed).block(0)
    label = EVERY_KIND[kind][0]
    labels = block.rows[label].to_numpy()

    assert labels.mean() == pytest.approx(0.25, abs=0.02)
    assert roc_auc_score(labels, block.probabilities[label]) == pytest.approx(0.83, abs=0.02)


@every_kind
def test_labels_are_drawn_with_the_true_probabilities(kind):
    blocks = list(sample_blocks(KINDS.get(kind)(0), 0, 5 * BLOCK_ROWS))

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


def test_error_of_the_true_means():
    error = AttainableError()
    error.update(np.array([1.0, 2.0]), np.array([1.0, 5.0], np.float32))
    error.update(np.array([0.0]), np.array([3.0], np.float32))

    assert error.summarize().mean == 3.0
    assert error.summarize().attainable_rmse == pytest.approx(6.0**0.5)
