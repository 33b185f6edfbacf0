"""What a run leaves for those who look at it afterwards."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import SMALL_RUN, Workplace, write_run

TRAIN_CONFIG: dict[str, Any] = {**SMALL_RUN["train_config"], "num_epochs": 1}


def scalars(folder: Path, tag: str) -> list[int]:
    """The steps that a tag of TensorBoard has."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    return [event.step for event in accumulator.EventAccumulator(str(folder)).Reload().Scalars(tag)]


def log_of(workplace: Workplace) -> list[dict[str, Any]]:
    lines = (workplace.folder / "run" / "log.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_resumed_run_has_every_step_once_in_tensorboard(workplace: Workplace) -> None:
    half = {**TRAIN_CONFIG, "num_epochs": None, "num_steps": 20}
    write_run(workplace.run_file, workplace.data, train_config=half)
    assert workplace.penstock("train", "run.yaml").code == 0
    write_run(workplace.run_file, workplace.data, train_config={**half, "num_steps": 30})
    assert workplace.penstock("train", "run.yaml", "--continue_train").code == 0

    board = workplace.folder / "run" / "tensorboard"
    assert scalars(board / "train", "loss/total") == [5, 10, 15, 20, 25, 30]
    assert scalars(board / "eval", "metric/auc") == [10, 20, 30]
    assert len(list((board / "train").iterdir())) == 2


def test_a_profiled_run_has_a_trace_and_its_dearest_operators(workplace: Workplace) -> None:
    done = workplace.penstock("train", "run.yaml", "--profile", "--set", "train_config.num_epochs=1")

    assert done.code == 0, done.err
    assert "profile:" in done.err
    [profile] = [record for record in log_of(workplace) if record.get("event") == "profile"]
    assert (workplace.folder / "run" / "profile" / profile["trace"]).exists()
    assert len(profile["operators"]) == 10
