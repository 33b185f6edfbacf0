"""Where the time of a step goes: a trace of a few steps, and the operators that take most of it.

`train_config.is_profiling` or `penstock train --profile`: one step is let pass, one warms up, ten are traced into
model_dir/profile, to be opened with chrome://tracing or Perfetto.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from penstock.training.events import Event, Step

FOLDER = "profile"
WAIT_STEPS, WARM_UP_STEPS, ACTIVE_STEPS = 1, 1, 10
NUM_OPERATORS = 10
STEP_MARK = "ProfilerStep"
"""What the profiler calls a whole step: no operator."""

_logger = logging.getLogger(__name__)


class Profiling(ExitStack):
    """Listens to a trainer inside a `with` block and traces its first steps."""

    def __init__(self, folder: Path, on_trace: Callable[[Sequence[dict[str, Any]], Path], None]) -> None:
        """`on_trace` is given the dearest operators and the trace, once, when it is written."""
        super().__init__()
        self._folder, self._on_trace = folder / FOLDER, on_trace
        # The library behind the profiler marks each trace on stderr below this level; what a user has set stays.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        on_gpu = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
        steps = {"wait": WAIT_STEPS, "warmup": WARM_UP_STEPS, "active": ACTIVE_STEPS}
        self._profiler = torch.profiler.profile(
            activities=[ProfilerActivity.CPU, *on_gpu],
            schedule=torch.profiler.schedule(**steps, repeat=1),
            on_trace_ready=self._write,
        )
        self._profiler.start()
        self.callback(self._profiler.stop)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Step):
            self._profiler.step()

    def _write(self, profiler: Any) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"steps-to-{profiler.step_num}.json.gz"
        profiler.export_chrome_trace(str(path))

        def microseconds(operator: Any) -> float:
            """By itself, without the operators that it calls; on a device where there is one."""
            return float(operator.self_device_time_total or operator.self_cpu_time_total)

        averages = [each for each in profiler.key_averages() if not each.key.startswith(STEP_MARK)]
        total = sum(map(microseconds, averages)) or 1.0
        operators = [
            {
                "operator": each.key,
                "calls": each.count,
                "milliseconds": round(microseconds(each) / 1000, 3),
                "share": round(microseconds(each) / total, 4),
            }
            for each in sorted(averages, key=microseconds, reverse=True)[:NUM_OPERATORS]
        ]
        for each in operators:
            figures = f"{each['share']:4.0%}  {each['milliseconds']:9.1f} ms  {each['calls']:6,} calls"
            _logger.info("profile: %s  %s", figures, each["operator"])
        self._on_trace(operators, path)
