"""Where the time of a step goes: a trace of a few steps, and the operators that take most of it.

`train_config.is_profiling` or `penstock train --profile`: one step is let pass, one warms up, ten are traced into
model_dir/profile, to be opened with chrome://tracing or Perfetto.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch.profiler import ProfilerActivity

FOLDER = "profile"
WAIT_STEPS, WARM_UP_STEPS, ACTIVE_STEPS = 1, 1, 10
NUM_OPERATORS = 10
STEP_MARK = "ProfilerStep"
"""What the profiler calls a whole step: no operator."""

_logger = logging.getLogger(__name__)
Tell = Callable[[Sequence[dict[str, Any]], Path], None]


class Profiling:
    """Traces the first steps of a `with` block; call `step` after each."""

    def __init__(self, folder: Path, tell: Tell) -> None:
        """`tell` is given the dearest operators and the trace, once, when it is written."""
        self._folder, self._tell = folder / FOLDER, tell
        # The library behind the profiler marks each trace on stderr below this level; what a user has set stays.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        on_gpu = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
        self._profiler = torch.profiler.profile(
            activities=[ProfilerActivity.CPU, *on_gpu],
            schedule=torch.profiler.schedule(
                wait=WAIT_STEPS, warmup=WARM_UP_STEPS, active=ACTIVE_STEPS, repeat=1
            ),
            on_trace_ready=self._write,
        )

    def __enter__(self) -> Self:
        self._profiler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._profiler.stop()

    def step(self) -> None:
        """A step is done."""
        self._profiler.step()

    def _write(self, profiler: Any) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"steps-to-{profiler.step_num}.json.gz"
        profiler.export_chrome_trace(str(path))
        operators = dearest_operators(profiler.key_averages())
        for line in operator_lines(operators):
            _logger.info("%s", line)
        self._tell(operators, path)


def dearest_operators(averages: Sequence[Any], count: int = NUM_OPERATORS) -> list[dict[str, Any]]:
    """The operators that took most time by themselves, without those that they call; on a device where there is one."""

    def microseconds(operator: Any) -> float:
        return float(operator.self_device_time_total or operator.self_cpu_time_total)

    operators = [operator for operator in averages if not operator.key.startswith(STEP_MARK)]
    total = sum(map(microseconds, operators)) or 1.0
    chosen = sorted(operators, key=microseconds, reverse=True)[:count]
    return [
        {
            "operator": operator.key,
            "calls": operator.count,
            "milliseconds": round(microseconds(operator) / 1000, 3),
            "share": round(microseconds(operator) / total, 4),
        }
        for operator in chosen
    ]


def operator_lines(operators: Sequence[dict[str, Any]]) -> list[str]:
    """For the terminal, the dearest first."""
    return [
        f"profile: {operator['share']:4.0%}  {operator['milliseconds']:9.1f} ms  {operator['calls']:6,} calls  "
        f"{operator['operator']}"
        for operator in operators
    ]
