"""A real training on clicks whose tastes change half-way, watched by one train metric with several decays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import penstock

NUM_STEPS = 2000
STEP_OF_CHANGE = 1000
STEPS_BETWEEN_POINTS = 10
BATCH_ROWS = 128
NUM_USERS, NUM_ITEMS = 400, 100

Setting = tuple[float, int]
"""Decay rate, and steps of a window."""

Points = list[tuple[float, float]]
"""Step, and what the metric shows after it."""


def write_clicks(path: Path) -> None:
    """Rows in the order of time: after the step of the change the items that were liked no longer are."""
    generator = np.random.default_rng(0)
    num_rows = NUM_STEPS * BATCH_ROWS
    users, items = generator.integers(0, NUM_USERS, num_rows), generator.integers(0, NUM_ITEMS, num_rows)
    of_users, of_items = generator.normal(0, 0.7, NUM_USERS), generator.normal(0, 1.3, NUM_ITEMS)
    of_items_later = generator.permutation(of_items)
    is_early = np.arange(num_rows) < STEP_OF_CHANGE * BATCH_ROWS
    liking = of_users[users] + np.where(is_early, of_items[items], of_items_later[items]) - 1
    clicks = generator.random(num_rows) < 1 / (1 + np.exp(-liking))
    columns = {"user": users, "item": items, "click": clicks.astype(np.int64)}
    pq.write_table(pa.table(columns), path, row_group_size=BATCH_ROWS * 100)


def watched_run(folder: Path, settings: Sequence[Setting]) -> Mapping[str, Any]:
    """The run file: `auc`, as training follows it, once for each setting."""
    watched = [
        {
            "custom_metric": {"import_path": "penstock.metrics.auc:DecayAUC", "name": name_of(setting)},
            "decay_rate": setting[0],
            "decay_step": setting[1],
        }
        for setting in settings
    ]
    return {
        "train_input_path": str(folder / "clicks.parquet"),
        "model_dir": str(folder / "run"),
        "memory": {"limit": "4GiB"},
        "data_config": {"batch_size": BATCH_ROWS, "label_fields": ["click"]},
        "feature_configs": [id_feature("user", NUM_USERS), id_feature("item", NUM_ITEMS)],
        "model_config": {
            "feature_groups": [
                {"group_name": "wide", "group_type": "WIDE", "feature_names": ["user", "item"]},
                {"group_name": "deep", "group_type": "DEEP", "feature_names": ["user", "item"]},
            ],
            "deepfm": {"deep": {"hidden_units": [16]}},
            "losses": [{"binary_cross_entropy": {}}],
            "train_metrics": watched,
        },
        "train_config": {
            "num_steps": NUM_STEPS,
            "log_step_count_steps": STEPS_BETWEEN_POINTS,
            "use_tensorboard": False,
            "sparse_optimizer": {"adagrad_optimizer": {"lr": 0.05}},
            "dense_optimizer": {"adam_optimizer": {"lr": 0.002}},
        },
    }


def id_feature(name: str, num_buckets: int) -> Mapping[str, Any]:
    """One id, a row of its own for each value."""
    options = {
        "feature_name": name,
        "expression": f"user:{name}",
        "num_buckets": num_buckets,
        "embedding_dim": 8,
    }
    return {"id_feature": options}


def name_of(setting: Setting) -> str:
    """What the metric with this setting is called in the log."""
    rate, steps = setting
    return f"auc_{round(100 * rate)}_{steps}"


class Watching:
    """Keeps what the log shows of each setting."""

    def __init__(self, settings: Sequence[Setting]) -> None:
        self.points: dict[Setting, Points] = {setting: [] for setting in settings}

    def on_log(self, step: int, metrics: Mapping[str, float], control: object) -> None:
        """A line of the log was written."""
        for setting, points in self.points.items():
            points.append((float(step), metrics[name_of(setting)]))


def watch(folder: Path, settings: Sequence[Setting]) -> Mapping[Setting, Points]:
    """Train in an empty folder; gives the curve of each setting."""
    write_clicks(folder / "clicks.parquet")
    run_file = folder / "run.yaml"
    run_file.write_text(yaml.safe_dump(watched_run(folder, settings)), encoding="utf-8")
    watching = Watching(settings)
    penstock.train(penstock.load_run(run_file), callbacks=[watching])
    return watching.points
