"""A trace of a few steps, and the dearest operators."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from penstock.observe.profiler import Profiling, operator_lines


def profiled(folder: Path, num_steps: int) -> list[tuple[Any, Path]]:
    """What is told of a run whose steps multiply matrices."""
    told: list[tuple[Any, Path]] = []
    with Profiling(folder, lambda operators, path: told.append((operators, path))) as profiling:
        for _ in range(num_steps):
            torch.ones(64, 64) @ torch.ones(64, 64)
            profiling.step()
    return told


def test_ten_steps_are_traced_after_one_that_passes_and_one_that_warms_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
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


def test_a_run_that_ends_on_the_way_has_a_trace_of_what_there_was(tmp_path: Path) -> None:
    [(operators, path)] = profiled(tmp_path, 5)

    assert path.exists()
    assert operators


def test_the_operators_are_told_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    profiled(tmp_path, 12)

    assert any("aten::mm" in message for message in caplog.messages)
    assert operator_lines([{"operator": "mm", "calls": 1200, "milliseconds": 12.34, "share": 0.5}]) == [
        "profile:  50%       12.3 ms   1,200 calls  mm"
    ]
