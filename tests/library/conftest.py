"""What the tests of the public surface share: the command, small data, and runs that are trained once.

Nothing here or beside it imports a module of Penstock other than `penstock` itself and the command: whatever moves
inside, these tests stay as they are.
"""

import contextlib
import json
import logging
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import penstock
from penstock.cli.app import app

RUN_FILE = """\
train_input_path: clicks.parquet
eval_input_path: clicks.parquet
model_dir: run
memory: {limit: 8GiB}
data_config: {batch_size: 8, fg_mode: FG_NORMAL, label_fields: [click], shuffle: true, shuffle_buffer: 1MiB}
feature_configs:
  - id_feature: {feature_name: user, expression: "user:user_id", num_buckets: 100, embedding_dim: 4}
  - id_feature: {feature_name: item, expression: "item:item_id", hash_bucket_size: 50, embedding_dim: 4}
  - raw_feature: {feature_name: price, expression: "item:price", default_value: "0"}
model_config:
  feature_groups:
    - {group_name: wide, group_type: WIDE, feature_names: [user, item]}
    - {group_name: deep, group_type: DEEP, feature_names: [user, item, price]}
  deepfm: {deep: {hidden_units: [4]}}
  losses: [{binary_cross_entropy: {}}]
  metrics: [{auc: {}}]
train_config:
  num_epochs: 2
  log_step_count_steps: 1
  save_checkpoints_steps: 2
  sparse_optimizer: {adagrad_optimizer: {lr: 0.1}}
  dense_optimizer: {adam_optimizer: {lr: 0.05}}
"""

PREP_FILE = """\
preprocessing:
  input_path: raw/*.txt
  extract: library_game:samples
  intermediate_dir: batches
  output_dir: store
  batch_size: 4
  parallel: false
  splits: {train: 0.75, val: 0.25, test: 0.0}
"""

EXTRACT = '''
"""Lines of text to samples: what was chosen, then two numbers that were seen."""


def samples(path):
    with open(path) as lines:
        for line in lines:
            chosen, *seen = map(float, line.split())
            mask = [1, 1, 1]
            yield {"features": seen, "labels": {"move": int(chosen)}, "masks": {"move": mask}}
'''

NUM_CLICKS = 20


@dataclass(frozen=True)
class Finished:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def run_command(*words: str | Path) -> Finished:
    """`penstock ...` in this process, in the current folder; logging is left as it was."""
    logger = logging.getLogger("penstock")
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    try:
        with warnings.catch_warnings():
            done = CliRunner().invoke(app, [*map(str, words)], prog_name="penstock")
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
    return Finished(done.exit_code, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def command() -> Callable[..., Finished]:
    """The program."""
    return run_command


def write_clicks(path: Path) -> pa.Table:
    """Twenty rows; a click follows from the user."""
    rows = np.arange(NUM_CLICKS)
    table = pa.table(
        {
            "user_id": rows,
            "item_id": [f"item {row % 7}" for row in rows],
            "price": [None if row == 3 else row / 4 for row in rows],
            "click": (rows % 3 == 0).astype(np.int64),
        }
    )
    pq.write_table(table, path, row_group_size=6)
    return table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: clicks.parquet and a run file over it."""
    monkeypatch.chdir(tmp_path)
    write_clicks(tmp_path / "clicks.parquet")
    (tmp_path / "run.yaml").write_text(RUN_FILE)
    return tmp_path


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run, not to be changed."""
    place = tmp_path_factory.mktemp("trained")
    with contextlib.chdir(place):
        write_clicks(place / "clicks.parquet")
        (place / "run.yaml").write_text(RUN_FILE)
        penstock.train(penstock.load_run("run.yaml"))
    return place


@pytest.fixture
def trained_folder(folder: Path, trained_run: Path) -> Path:
    """The current folder, with a run that was trained in it."""
    shutil.copytree(trained_run / "run", folder / "run")
    return folder


@pytest.fixture
def game_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: raw files, a function that reads them, and a run file that prepares them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "library_game.py").write_text(EXTRACT)
    (tmp_path / "raw").mkdir()
    for game in range(4):
        lines = [f"{row % 3} {game} {game * 100 + row + 0.5}\n" for row in range(5)]
        (tmp_path / "raw" / f"game_{game}.txt").write_text("".join(lines))
    (tmp_path / "prep.yaml").write_text(PREP_FILE)
    return tmp_path


@pytest.fixture(scope="session")
def log_of() -> Callable[[str | Path], list[dict[str, Any]]]:
    """The lines of a run's log."""
    return lambda model_dir: [
        json.loads(line) for line in Path(model_dir, "log.jsonl").read_text().splitlines()
    ]


@pytest.fixture(scope="session")
def numbered_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """103 rows in row groups of 10: row i has y = i and x = (i, 10 i)."""
    path = tmp_path_factory.mktemp("numbered") / "numbered.parquet"
    labels = np.arange(103)
    features = pa.FixedSizeListArray.from_arrays(np.stack([labels, 10 * labels], axis=1).reshape(-1), 2)
    pq.write_table(pa.table({"x": features, "y": labels}), path, row_group_size=10)
    return path
