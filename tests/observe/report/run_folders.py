"""Folders of runs as training leaves them, written by hand so that every number is known."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MIB = 1 << 20

START = {
    "event": "start",
    "step": 0,
    "limit_bytes": 2048 * MIB,
    "planned_bytes": {"process": 500 * MIB, "model": 4 * MIB},
    "shuffle_rows": 4096,
}
STEPS = [
    {
        "step": step,
        "epoch": 0,
        "rows": 1000 * step,
        "loss": 0.7 - step / 100,
        "learning_rate": {"sparse": 0.05, "dense": 0.001 * step},
        "train_metrics": {"auc": 0.6 + step / 100},
        "rows_per_second": 50_000 + step,
        "waiting_share": 0.5,
        "memory_bytes": (600 + step) * MIB,
    }
    for step in (5, 10, 15)
]
END = {
    "event": "end",
    "step": 15,
    "rows": 15_000,
    "epoch": 1,
    "shuffle": {"block_coverage": 0.87, "label_autocorrelation": 0.012, "batches_looked_at": 3},
    "left_out_rows": 2,
    "memory": {
        "peak_bytes": 640 * MIB,
        "peak_stage": "train",
        "stages": {
            "process": {"planned_bytes": 500 * MIB, "measured_bytes": 500 * MIB},
            "model": {"planned_bytes": 4 * MIB, "measured_bytes": 5 * MIB, "setting": "embedding_dim"},
        },
    },
    "advice": {
        "text": "waiting 50% of the time: parsing is the bottleneck; data_config.num_workers: 2",
        "setting": "data_config.num_workers",
        "extra_bytes": 1,
    },
}
EVALUATIONS = [
    {
        "step": step,
        "epoch": 0,
        "metrics": {"auc": 0.7 + step / 100, "grouped_auc": None},
        "losses": {"binary_cross_entropy": 0.5},
        "rows": 200,
        "seconds": 0.1,
        "checkpoint": f"step-{step}",
    }
    for step in (10, 15)
]
EARLY_END = {
    **END,
    "stopped_because": "auc got no better in 1 evaluation (best 0.8 at step 10)",
    "restored_step": 10,
}
"""Of a run that stopped after the evaluation of step 15 and went back to step 10."""

RUN_FILE = """\
train_input_path: data/clicks
model_dir: runs/one
model_config:
  deepfm: {}
train_config:
  num_epochs: 1
  seed: 1
"""
VERSION = {"packages": {"torch": "2.13.0"}, "data": {"a.parquet": MIB, "b.parquet": MIB}}


def write_run(
    folder: Path,
    log: Sequence[Mapping[str, Any]] = (START, *STEPS, END),
    evaluations: Sequence[Mapping[str, Any]] = EVALUATIONS,
    run_file: str = RUN_FILE,
) -> Path:
    """A model_dir with these records."""
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    (folder / "eval_result.jsonl").write_text("".join(json.dumps(line) + "\n" for line in evaluations))
    (folder / "run.yaml").write_text(run_file)
    (folder / "version").write_text(json.dumps(VERSION))
    return folder


def column(name: str, kind: str, distinct: int, *uses: str, **facts: Any) -> dict[str, Any]:
    """What a look at some rows found in a column."""
    known = {"column": name, "type": kind, "distinct": distinct, "distinct_is": "at least", "null_part": 0.0}
    return {**known, "used_for": list(uses), **facts}


PROFILE = {
    "rows": 15_000,
    "rows_looked_at": 4_096,
    "columns_used": 4,
    "columns": [
        column(
            *("click", "int64", 2, "label"), min=0, max=1, mean=0.25, most_frequent=0, most_frequent_part=0.75
        ),
        column(
            *("user_id", "int64", 3_000, "id_feature user", "grouping of metrics"),
            min=0,
            max=9_999,
            mean=5_000.0,
            most_frequent=7,
            most_frequent_part=0.01,
        ),
        column(
            *("tags", "list<string>", 120, "id_feature tags"),
            null_part=0.0625,
            min="<b>",
            max="t\x1dz",
            mean_length=2.84,
            shortest=1,
            longest=5,
        ),
    ],
    "seconds": 0.1,
}
"""What a run of 15,000 rows found in three of its four columns."""


def write_profile(folder: Path, profile: Mapping[str, Any] = PROFILE) -> Path:
    """The same folder, of a run that looked at its data."""
    (folder / "data_profile.json").write_text(json.dumps(profile))
    return folder
