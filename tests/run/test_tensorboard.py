"""Summaries, read back by TensorBoard's own reader."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from penstock.observe.tensorboard import MOST_VALUES, TensorBoard, open_tensorboard, sampled
from penstock.training.sections import SUMMARIES, TrainConfig

pytest.importorskip("tensorboard")

OPTIMIZERS = {
    "sparse_optimizer": {"adagrad_optimizer": {"lr": 0.1}},
    "dense_optimizer": {"adam_optimizer": {"lr": 0.1}},
}
NUMBERS = {"loss": 0.5, "rows_per_second": 900, "waiting_share": 0.25, "learning_rate/dense": 0.125}


def train_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate({**OPTIMIZERS, "num_steps": 10, **changes})


def parameters() -> dict[str, torch.Tensor]:
    """A layer with a gradient of norm 5, and a table without one."""
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    weight.grad = torch.tensor([3.0, 4.0, 0.0, 0.0])
    return {"weight": weight, "table": torch.nn.Parameter(torch.zeros(3))}


def board(folder: Path, first_step: int = 0, **changes: Any) -> TensorBoard:
    return TensorBoard(folder, train_config(**changes), parameters, first_step)


def read(folder: Path, part: str = "train") -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder / "tensorboard" / part)).Reload()


def scalars(folder: Path, tag: str, part: str = "train") -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder, part).Scalars(tag)]


def test_loss_and_learning_rate_are_written_by_default(tmp_path: Path) -> None:
    summaries = board(tmp_path)
    summaries.log(5, {**NUMBERS, "auc": 0.75})
    summaries.after_step(5)
    summaries.close()

    assert read(tmp_path).Tags()["scalars"] == [
        "loss/total",
        "speed/rows_per_second",
        "speed/waiting_share",
        "learning_rate/dense",
        "metric/auc",
    ]
    assert read(tmp_path).Tags()["histograms"] == []
    assert scalars(tmp_path, "loss/total") == [(5, 0.5)]


def test_every_kind_of_summary(tmp_path: Path) -> None:
    summaries = board(tmp_path, tensorboard_summaries=list(SUMMARIES), histogram_steps=2)
    for step in (1, 2):
        summaries.after_step(step)
        summaries.log(step, NUMBERS)
    summaries.close()

    assert scalars(tmp_path, "global_gradient_norm") == [(1, 5.0), (2, 5.0)]
    assert scalars(tmp_path, "gradient_norm/weight") == [(1, 5.0), (2, 5.0)]
    found = read(tmp_path)
    assert found.Tags()["histograms"] == ["parameter/weight", "gradient/weight", "parameter/table"]
    [event] = found.Histograms("parameter/weight")
    values = event.histogram_value
    assert (event.step, values.min, values.max, values.num, values.sum) == (2, 1.0, 4.0, 4.0, 10.0)
    assert values.sum_squares == 30.0
    assert sum(values.bucket) == 4.0


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    summaries = board(tmp_path, tensorboard_summaries=["gradient_norm"])
    summaries.log(1, NUMBERS)
    summaries.close()

    assert read(tmp_path).Tags()["scalars"] == [
        "speed/rows_per_second",
        "speed/waiting_share",
        "gradient_norm/weight",
    ]


def test_evaluations_have_a_folder_of_their_own(tmp_path: Path) -> None:
    summaries = board(tmp_path)
    summaries.evaluation(7, {"click": 0.25, "buy": 0.5}, {"auc": 0.75, "grouped_auc": math.nan})
    summaries.close()

    assert scalars(tmp_path, "loss/total", "eval") == [(7, 0.75)]
    assert scalars(tmp_path, "metric/auc", "eval") == [(7, 0.75)]
    assert "metric/grouped_auc" not in read(tmp_path, "eval").Tags()["scalars"]


def test_a_resumed_run_tells_no_step_twice(tmp_path: Path) -> None:
    killed = board(tmp_path)
    for step in (10, 20, 30):
        killed.log(step, {"loss": 1.0})
    killed.close()

    resumed = board(tmp_path, first_step=21)  # the checkpoint is of step 20
    for step in (30, 40):
        resumed.log(step, {"loss": 2.0})
    resumed.close()

    assert scalars(tmp_path, "loss/total") == [(10, 1.0), (20, 1.0), (30, 2.0), (40, 2.0)]


def test_what_was_written_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    board(tmp_path).log(1, NUMBERS)

    assert scalars(tmp_path, "loss/total") == [(1, 0.5)]


def test_both_histograms_without_their_steps_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board(tmp_path, tensorboard_summaries=["parameter", "gradient"])

    assert "parameter and gradient are never written" in caplog.messages[0]


def test_histograms_without_their_steps_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board(tmp_path, tensorboard_summaries=["loss", "gradient"])

    assert caplog.messages == [
        "train_config.tensorboard_summaries: gradient is never written; set train_config.histogram_steps"
    ]


def test_nothing_is_opened_where_it_is_not_wanted(tmp_path: Path) -> None:
    assert open_tensorboard(tmp_path, train_config(use_tensorboard=False), parameters, 0) is None
    assert open_tensorboard(tmp_path, train_config(), parameters, 0) is not None
    assert list(tmp_path.iterdir()) == []


def test_a_histogram_of_a_large_table_looks_at_some_of_its_values() -> None:
    assert len(sampled(torch.zeros(10, MOST_VALUES))) == MOST_VALUES
    assert sampled(torch.tensor([[1.0, 2.0]])).tolist() == [1.0, 2.0]
