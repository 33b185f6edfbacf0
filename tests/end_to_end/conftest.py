"""Sample data, a small run file and a trained run, made once and shared by the tests that only read them."""

import contextlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.prep.sample_data.write import write_sample_data
from tests.cli.desk import messages_left_as_they_were

SMALL_RUN: dict[str, Any] = yaml.safe_load("""
data_config: {batch_size: 512, fg_mode: FG_NORMAL, label_fields: [click], shuffle: true, shuffle_buffer: 1MiB}
feature_configs:
  - id_feature: {feature_name: user_id, expression: "user:user_id", num_buckets: 10000, embedding_dim: 8}
  - id_feature: {feature_name: item_id, expression: "item:item_id", num_buckets: 5000, embedding_dim: 8}
  - id_feature: {feature_name: category, expression: "item:category", hash_bucket_size: 64, embedding_dim: 8}
  - raw_feature: {feature_name: price, expression: "item:price", default_value: "10"}
model_config:
  feature_groups:
    - {group_name: wide, group_type: WIDE, feature_names: [user_id, item_id, category]}
    - {group_name: deep, group_type: DEEP, feature_names: [user_id, item_id, category, price]}
  deepfm: {deep: {hidden_units: [16], dropout_ratio: [0.1]}}
  losses: [{binary_cross_entropy: {}}]
  metrics: [{auc: {}}, {log_loss: {}}]
train_config:
  num_epochs: 2
  save_checkpoints_steps: 10
  log_step_count_steps: 5
  sparse_optimizer: {adagrad_optimizer: {lr: 0.05}}
  dense_optimizer: {adam_optimizer: {lr: 0.001}}
""")


@dataclass(frozen=True)
class Finished:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Workplace:
    """Sample data, a run file over them, and the program."""

    folder: Path
    data: Path
    run_file: Path

    def penstock(self, *words: str | Path) -> Finished:
        """Run the program as a user would, without the seconds that a process of its own takes to load torch."""
        with messages_left_as_they_were(), contextlib.chdir(self.folder):
            done = CliRunner().invoke(app, [*map(str, words)], prog_name="penstock")
        return Finished(done.exit_code, done.stdout, done.stderr)

    def process(self, *words: str | Path) -> Finished:
        """The same in a process of its own, for what is measured of a process or depends on how it starts and ends."""
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *map(str, words)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)


def write_run(path: Path, data: Path, **changes: object) -> Path:
    """The small run file over a folder of sample data."""
    inputs = {"train_input_path": f"{data}/train/*.parquet", "eval_input_path": f"{data}/test/*.parquet"}
    path.write_text(yaml.safe_dump({**inputs, "model_dir": "run", **SMALL_RUN, **changes}))
    return path


@pytest.fixture(scope="session")
def sample_clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 rows of clicks in several files with several row groups each."""
    folder = tmp_path_factory.mktemp("sample") / "clicks"
    write_sample_data("clicks", 20_000, folder, num_files=3, row_group_rows=2_000)
    return folder


@pytest.fixture
def workplace(tmp_path: Path, sample_clicks: Path) -> Workplace:
    """A fresh folder with a run file."""
    return Workplace(tmp_path, sample_clicks, write_run(tmp_path / "run.yaml", sample_clicks))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, sample_clicks: Path) -> Workplace:
    """A trained run, not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    place = Workplace(folder, sample_clicks, write_run(folder / "run.yaml", sample_clicks))
    done = place.penstock("train", "run.yaml")
    assert done.code == 0, done.err
    return place
