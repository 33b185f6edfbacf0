"""A trace of a few steps with the dearest operators, and what a run takes of its machine."""

import gzip
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from penstock.observe.listeners import MachineUse, Profiling
from penstock.training.events import Step

STEP = Step(SimpleNamespace(), 0.5, SimpleNamespace())  # type: ignore[arg-type]


def profiled(folder: Path, num_steps: int) -> list[tuple[Any, Path]]:
    """What is reported of a run whose steps multiply matrices."""
    found: list[tuple[Any, Path]] = []
    with Profiling(folder, lambda operators, path: found.append((operators, path))) as profiling:
        for _ in range(num_steps):
            torch.ones(64, 64) @ torch.ones(64, 64)
            profiling(STEP)
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
