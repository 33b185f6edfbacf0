"""What becomes of a batch for which there is not enough memory."""

import logging
import re
from collections.abc import Callable
from pathlib import Path

import torch

from penstock.config.errors import BudgetExceeded, PenstockError
from penstock.config.sizes import format_size
from penstock.loops.progress import TrainingProgress
from penstock.loops.rows_aside import write_rows
from penstock.loops.step import StepOutcome
from penstock.loops.train import place
from penstock.pipeline.run_config import RunConfig
from penstock.runtime.memory import MemoryMonitor
from penstock.tensors.batch import Batch

logger = logging.getLogger(__name__)

SIGNS = ("DefaultCPUAllocator", "bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED")
"""Words of errors that say so, though their class does not."""


class StepInMemory:
    """Takes steps; where memory does not suffice for one, its rows are written aside and what to change is told."""

    def __init__(
        self,
        step: Callable[[Batch, TrainingProgress], StepOutcome],
        run: RunConfig,
        folder: Path,
        monitor: MemoryMonitor,
        device: torch.device,
    ) -> None:
        self._step, self._run, self._folder = step, run, folder
        self._monitor, self._device = monitor, device

    def __call__(self, batch: Batch, progress: TrainingProgress) -> StepOutcome:
        """One step."""
        try:
            return self._step(batch, progress)
        except (RuntimeError, MemoryError, PenstockError) as error:
            cause = innermost(error)
            if not is_out_of_memory(cause):
                raise
            logger.debug("memory ran out", exc_info=True)
            use = f"{asked_for(cause)}{self._taken()}"
            del cause
        # Only here, where the error is gone, are the tensors of the step gone too, and there is room to write.
        rows = self._write(batch, progress)
        raise BudgetExceeded(
            f"step {progress.step + 1}: memory ran out on a batch of {batch.num_rows:,} rows{place(batch)}, "
            f"{format_size(batch.nbytes)} as read{self._cost()}: {use}; {rows}; lower {self._setting()}, "
            "or the widths of tables and layers, then go on with --continue_train"
        )

    def _taken(self) -> str:
        """What is held of what there is, on the device that computes."""
        if self._device.type == "cuda":
            taken, limit = torch.cuda.memory_allocated(self._device), torch.cuda.mem_get_info(self._device)[1]
            return f"{format_size(taken)} of {format_size(limit)} of {self._device} were taken"
        limit = self._monitor.report.limit_bytes
        return f"{format_size(self._monitor.sample())} of memory.limit {format_size(limit)} were taken"

    def _cost(self) -> str:
        limit = self._run.data_config.batch_cost_size
        return "" if limit is None else f", its cost at most {limit:,}"

    def _setting(self) -> str:
        cut_by_cost = self._run.data_config.batch_cost_size is not None
        return "data_config.batch_cost_size" if cut_by_cost else "data_config.batch_size"

    def _write(self, batch: Batch, progress: TrainingProgress) -> str:
        path = self._folder / f"step-{progress.step + 1}.jsonl"
        try:
            write_rows(path, batch, {})
        except (MemoryError, RuntimeError, OSError) as error:
            return (
                f"its rows could not be written to {path}: {str(error) or 'there is no memory for it either'}"
            )
        return f"its rows are in {path}"


def innermost(error: BaseException) -> BaseException:
    """The error that others were raised from: a part of one's own that fails is told as such."""
    return error if error.__cause__ is None else innermost(error.__cause__)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory left, on whatever device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(sign in str(error) for sign in SIGNS)


def asked_for(error: BaseException) -> str:
    """How much was wanted at once, where the error tells it: "1.5GiB were asked for, "."""
    found = re.search(r"tried to allocate ([\d.]+) ?(bytes|[KMGT]iB)", str(error), re.IGNORECASE)
    if found is None:
        return ""
    amount, unit = found.groups()
    size = format_size(int(amount)) if unit == "bytes" else f"{float(amount):g}{unit}"
    return f"{size} were asked for, "
