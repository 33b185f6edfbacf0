"""Who listens to a trainer: summaries, read back by the reader of TensorBoard; a trace; and the use of the machine."""

import gzip
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from penstock.observe.listeners import MachineUse, Profiling, TensorBoard, warn_of_histograms
from penstock.training.evaluate import Evaluation
from penstock.training.events import Evaluated, Logged, Step
from penstock.training.sections import SUMMARIES, TrainConfig

OPTIMIZERS = {
    "sparse_optimizer": {"adagrad_optimizer": {"lr": 0.1}},
    "dense_optimizer": {"adam_optimizer": {"lr": 0.1}},
}
NUMBERS = {"loss": 0.5, "rows_per_second": 900, "waiting_share": 0.25}


def train_config(**changes: Any) -> TrainConfig:
    return TrainConfig.model_validate({**OPTIMIZERS, "num_steps": 10, **changes})


def parameters() -> dict[str, torch.Tensor]:
    """A layer with a gradient of norm 5, and a table without one."""
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    weight.grad = torch.tensor([3.0, 4.0, 0.0, 0.0])
    return {"weight": weight, "table": torch.nn.Parameter(torch.zeros(3))}


def board(folder: Path, first_step: int = 0, **changes: Any) -> TensorBoard:
    return TensorBoard(folder, train_config(**changes), parameters, first_step)


def logged(step: int, numbers: Mapping[str, float] = NUMBERS, **metrics: float) -> Logged:
    return Logged(SimpleNamespace(step=step), numbers, {"dense": 0.125}, metrics, {})  # type: ignore[arg-type]


def stepped(step: int) -> Step:
    return Step(SimpleNamespace(step=step), 0.5, SimpleNamespace())  # type: ignore[arg-type]


def read(folder: Path, part: str = "train") -> Any:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    return accumulator.EventAccumulator(str(folder / "tensorboard" / part)).Reload()


def scalars(folder: Path, tag: str, part: str = "train") -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder, part).Scalars(tag)]


def test_loss_and_learning_rate_are_written_by_default_and_can_be_read_at_once(tmp_path: Path) -> None:
    summaries = board(tmp_path)
    assert list(tmp_path.iterdir()) == []
    summaries(logged(5, auc=0.75))
    summaries(stepped(5))

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
    with board(tmp_path, tensorboard_summaries=list(SUMMARIES), histogram_steps=2) as summaries:
        for step in (1, 2):
            summaries(stepped(step))
            summaries(logged(step))

    assert scalars(tmp_path, "global_gradient_norm") == [(1, 5.0), (2, 5.0)]
    assert scalars(tmp_path, "gradient_norm/weight") == [(1, 5.0), (2, 5.0)]
    found = read(tmp_path)
    assert found.Tags()["histograms"] == ["parameter/weight", "gradient/weight", "parameter/table"]
    [event] = found.Histograms("parameter/weight")
    values = event.histogram_value
    assert (event.step, values.min, values.max, values.num, values.sum) == (2, 1.0, 4.0, 4.0, 10.0)
    assert values.sum_squares == 30.0
    assert sum(values.bucket) == 4.0


def test_evaluations_have_a_folder_of_their_own(tmp_path: Path) -> None:
    evaluation = Evaluation({"auc": 0.75, "grouped_auc": math.nan}, {"click": 0.25, "buy": 0.5}, 6)
    with board(tmp_path) as summaries:
        summaries(Evaluated(step=7, epoch=0, evaluation=evaluation, is_recalled=False))

    assert scalars(tmp_path, "loss/total", "eval") == [(7, 0.75)]
    assert scalars(tmp_path, "metric/auc", "eval") == [(7, 0.75)]
    assert "metric/grouped_auc" not in read(tmp_path, "eval").Tags()["scalars"]


def test_a_resumed_run_tells_no_step_twice(tmp_path: Path) -> None:
    for first_step, steps, loss in ((0, (10, 20, 30), 1.0), (21, (30, 40), 2.0)):  # a checkpoint of step 20
        with board(tmp_path, first_step) as summaries:
            for step in steps:
                summaries(logged(step, {"loss": loss}))

    assert scalars(tmp_path, "loss/total") == [(10, 1.0), (20, 1.0), (30, 2.0), (40, 2.0)]


@pytest.mark.parametrize(
    ("kinds", "unseen"),
    [(["parameter", "gradient"], "parameter and gradient are"), (["loss", "gradient"], "gradient is")],
)
def test_histograms_without_their_steps_are_warned_of(
    kinds: list[str], unseen: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_histograms(train_config(tensorboard_summaries=kinds))

    assert caplog.messages == [
        f"train_config.tensorboard_summaries: {unseen} never written; set train_config.histogram_steps"
    ]


def profiled(folder: Path, num_steps: int) -> list[tuple[Any, Path]]:
    """What is reported of a run whose steps multiply matrices."""
    found: list[tuple[Any, Path]] = []
    with Profiling(folder, lambda operators, path: found.append((operators, path))) as profiling:
        for _ in range(num_steps):
            torch.ones(64, 64) @ torch.ones(64, 64)
            profiling(stepped(1))
    return found


def test_ten_steps_are_traced_after_one_that_passes_and_one_that_warms_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    [(operators, path)] = profiled(tmp_path, 30)

    assert capfd.readouterr().err == ""
    assert path.parent == tmp_path / "profile"
    names = [event.get("name") for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]]
    assert names.count("aten::mm") == 10
    assert len(operators) <= 10
    assert sum(operator["share"] for operator in operators) <= 1.001
    product = next(operator for operator in operators if operator["operator"] == "aten::mm")
    assert product["calls"] == 10
    assert not any("ProfilerStep" in operator["operator"] for operator in operators)
    figures = f"{product['share']:4.0%}  {product['milliseconds']:9.1f} ms      10 calls"
    assert f"profile: {figures}  aten::mm" in caplog.messages


def test_a_busy_process_uses_a_processor_and_a_sleeping_one_does_not() -> None:
    # By this clock an hour passes without work, and then a second with some: true on a machine of any speed.
    clock = iter([0.0, 3600.0, 3601.0])
    use = MachineUse(clock=lambda: next(clock))
    asleep = use.since_last()
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    awake = use.since_last()

    assert 0 <= asleep["cpu_share"] < awake["cpu_share"] <= 1
    assert awake["read_bytes_per_second"] >= 0
