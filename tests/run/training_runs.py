"""Training the desk's six rows from Python, and looking at what it left."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.run.run_config import load_run
from penstock.run.train import TrainResult, train
from tests.cli.desk import Desk

STEPS_OF_2 = {
    "data_config.batch_size": 2,
    "train_config.log_step_count_steps": 1,
    "train_config.save_checkpoints_steps": 1,
}
"""Three steps an epoch, each of them saved, evaluated and logged."""


def trained(desk: Desk, sets: dict[str, Any] | None = None, **options: Any) -> TrainResult:
    """Train the desk's run with some keys exchanged."""
    return train(load_run(desk.folder / "run.yaml", {**STEPS_OF_2, **(sets or {})}), **options)


@contextmanager
def desk_elsewhere(factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk for a run that the tests of a module share: each of them copies it, or only looks at it."""
    folder = factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield Desk.laid_out_in(folder)


def put_on(desk: Desk, model_dir: Path) -> Path:
    """A copy of a trained run, as if it had been trained here."""
    return Path(shutil.copytree(model_dir, desk.folder / "run"))


def log_of(model_dir: Path) -> list[dict[str, Any]]:
    """Every line of log.jsonl."""
    return [json.loads(line) for line in (model_dir / "log.jsonl").read_text().splitlines()]


def steps_of(model_dir: Path) -> list[dict[str, Any]]:
    """The lines about steps: what was computed, not what a clock measured."""
    computed = ("step", "epoch", "rows", "loss", "learning_rate", "train_metrics")
    return [
        {key: value for key, value in record.items() if key in computed}
        for record in log_of(model_dir)
        if "loss" in record
    ]


def parameters(checkpoint: Path) -> dict[str, bytes]:
    """Model, optimizers and everything else that a checkpoint holds, byte by byte."""
    return {path.name: path.read_bytes() for path in checkpoint.iterdir() if path.name != "manifest.json"}


def tensors(checkpoint: Path) -> dict[str, bytes]:
    """Model and optimizers alone."""
    return {
        name: content for name, content in parameters(checkpoint).items() if name.endswith(".safetensors")
    }
