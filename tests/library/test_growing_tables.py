"""Tables that grow, through whole runs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock

NUM_ROWS = 600


def write(folder: Path, name: str, first_item: int) -> None:
    """Items come and go: those of a later file have other ids; a click depends on the item."""
    generator = np.random.default_rng(first_item)
    items = first_item + generator.integers(0, 20, NUM_ROWS)
    clicks = (generator.random(NUM_ROWS) < np.where(items % 2, 0.9, 0.1)).astype(np.int64)
    table = pa.table(
        {"item": pa.array(items.astype(str)), "age": generator.normal(size=NUM_ROWS), "click": clicks}
    )
    pq.write_table(table, folder / name)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for day, name in enumerate(["day0.parquet", "day1.parquet", "test.parquet"]):
        write(tmp_path, name, 1000 * min(day, 1))

    def load(**edits):
        return penstock.load_run(
            {
                "train_input_path": "day0.parquet,day1.parquet",
                "eval_input_path": "test.parquet",
                "model_dir": "runs/growing",
                "data_config": {"batch_size": 50, "label_fields": ["click"]},
                "feature_configs": [
                    {
                        "id_feature": {
                            "feature_name": "item",
                            "zch": {"zch_size": 30, "lru": {}},
                            "embedding_dim": 4,
                        }
                    },
                    {"raw_feature": {"feature_name": "age", "default_value": "0"}},
                ],
                "train_config": {
                    "num_epochs": 1,
                    "save_checkpoints_steps": 7,
                    "sparse_optimizer": {"adagrad_optimizer": {"lr": 0.5}},
                },
            },
            edits,
        )

    return load


def test_new_items_take_the_rows_of_old_ones_and_are_learned(run):
    result = penstock.train(run())

    assert result.metrics["auc"] > 0.85


def test_a_run_that_was_stopped_goes_on_with_the_same_rows(run):
    whole = penstock.train(run())
    penstock.train(run(**{"model_dir": "runs/part", "train_config.num_steps": 16}))

    rest = penstock.train(run(model_dir="runs/part"), resume=True)

    assert rest.metrics == whole.metrics
    assert rest.losses == whole.losses
