"""Batches that moved nothing: a loss that is not finite, an overflow, not enough memory."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from penstock.config.errors import BudgetExceeded, DataError, PenstockError
from penstock.config.sizes import format_size
from penstock.observe.log import StepLog
from penstock.readers.origin import locate
from penstock.run.run_config import RunConfig
from penstock.runtime.memory import MemoryMonitor
from penstock.tensors.batch import Batch, Position
from penstock.training.precision import LossScaling
from penstock.training.progress import TrainingProgress
from penstock.training.sections import OnNonfinite, TrainConfig
from penstock.training.step import StepOutcome
from penstock.training.train import place

logger = logging.getLogger(__name__)


def write_rows(path: Path, batch: Batch, predictions: Mapping[str, torch.Tensor]) -> None:
    """Write where each row came from, what the model said about it, its labels, weights and features.

    Numbers that are not finite stand there as "NaN", "Infinity" and "-Infinity".
    """
    columns = {
        "predictions": {name: _numbers(values) for name, values in predictions.items()},
        "labels": {name: _numbers(values) for name, values in batch.labels.items()},
        "weights": {name: _numbers(values) for name, values in batch.sample_weights.items()},
        "features": dict(_features(batch)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in range(batch.num_rows):
            record: dict[str, Any] = _origin(batch.position, row)
            for kind, named in columns.items():
                record[kind] = {name: values[row] for name, values in named.items() if row < len(values)}
            file.write(json.dumps({key: value for key, value in record.items() if value != {}}) + "\n")


def first_bad_row(batch: Batch, predictions: Mapping[str, torch.Tensor]) -> str:
    """Which rows have a prediction that is not finite, for a message; where none has, nothing."""
    bad = torch.zeros(batch.num_rows, dtype=torch.bool)
    for name, values in predictions.items():
        if values.shape[:1] == bad.shape:
            wide = values.to("cpu", torch.float32).reshape(batch.num_rows, -1)
            bad |= ~(torch.isfinite(wide) | _is_masked(name, wide)).all(dim=1)
    count = int(bad.sum())
    if not count:
        return ""
    row = int(bad.nonzero()[0])
    origin = _origin(batch.position, row)
    place = f"row {origin['row']} of {origin['file']}" if origin else f"row {row} of the batch"
    return f"; predictions of {count:,} of them are not finite, the first {place}"


def _is_masked(name: str, values: torch.Tensor) -> torch.Tensor:
    """Which numbers are those of classes that a mask rules out: of several logits, -inf beside finite ones."""
    if not name.startswith("logits") or values.shape[1] < 2:
        return torch.zeros_like(values, dtype=torch.bool)
    return torch.isneginf(values) & torch.isfinite(values).any(dim=1, keepdim=True)


def _origin(position: Position | None, row: int) -> dict[str, Any]:
    if position is None:
        return {}
    file_index, file_row = locate(int(position.row_ids()[row]))
    known = file_index < len(position.file_paths)
    return {"file": position.file_paths[file_index] if known else f"file {file_index}", "row": file_row}


def _features(batch: Batch) -> Iterator[tuple[str, list[Any]]]:
    """Each feature of the data, row by row: numbers of dense ones, lists of ids of sparse ones."""
    for dense in batch.dense_features.values():
        for name, values in dense.to_dict().items():
            yield name, _numbers(values.squeeze(1) if values.shape[1] == 1 else values)
    for sparse in batch.sparse_features.values():
        for name, ids in sparse.to_dict().items():
            lengths = ids.lengths().tolist()
            yield name, [part.tolist() for part in ids.values().cpu().split(lengths)]
    for name, steps in batch.sequence_dense_features.items():
        yield name, [_numbers(part) for part in steps.values().cpu().split(steps.lengths().tolist())]


def _numbers(values: torch.Tensor) -> list[Any]:
    wide: torch.Tensor = values.detach().cpu()
    return [_told(value) for value in (wide.float() if wide.is_floating_point() else wide).tolist()]


def _told(value: Any) -> Any:
    """JSON has no numbers that are not finite."""
    if isinstance(value, list):
        return [_told(inner) for inner in value]
    if value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, value)


MAX_FILES = 10
"""Of so many batches that are skipped the rows are written."""
MAX_TOLD = 3
"""So many skipped batches are told one by one; after them, every tenfold of their number."""

IN_FP16 = "numbers of FP16 end at 65,504: use a normalizer for larger ones, or mixed_precision: BF16; or "
"""The first thing to think of there."""


class NonfiniteBatches:
    """Writes the rows of such batches aside, then stops the run or lets it pass over them.

    Too many of them in a row stop it all the same: then the parameters are at fault, and no later batch is better.
    """

    def __init__(self, folder: Path, train: TrainConfig) -> None:
        self._folder, self._choice = folder, train.on_nonfinite
        self._most_in_a_row = train.max_skipped_in_a_row
        self._of_precision = IN_FP16 if train.mixed_precision == "FP16" else ""
        self._in_a_row = 0
        self._step_of_last: int | None = None

    def meet(self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome) -> None:
        """Raise with the rows' place, or let the batch be passed over, with a warning of which there are never many."""
        self._in_a_row = self._in_a_row + 1 if self._step_of_last == progress.step else 1
        self._step_of_last = progress.step
        num_skipped = progress.skipped_batches + 1
        is_written = num_skipped <= MAX_FILES or self._choice is OnNonfinite.error
        path = self._write(progress, batch, outcome) if is_written else self._folder
        found = (
            f"step {progress.step + 1}: the loss is {outcome.loss} on {batch.num_rows:,} rows{place(batch)}"
            f"{first_bad_row(batch, outcome.predictions)}; the rows are in {path}"
        )
        if self._choice is OnNonfinite.error:
            raise DataError(
                f"{found}: {self._of_precision}look at them, or lower the learning rate, "
                "or pass over such batches with train_config.on_nonfinite: skip"
            )
        if self._in_a_row >= self._most_in_a_row:
            raise self._too_many(progress, outcome)
        if num_skipped <= MAX_TOLD:
            logger.warning("%s; skipped", found)
        elif is_power_of_ten(num_skipped):
            logger.warning("%s batches skipped, since their loss is not finite", f"{num_skipped:,}")

    def _too_many(self, progress: TrainingProgress, outcome: StepOutcome) -> DataError:
        return DataError(
            f"step {progress.step + 1}: the loss of {self._in_a_row:,} batches in a row is not finite "
            f"(now {outcome.loss}; train_config.max_skipped_in_a_row), which is hardly the fault of their rows; "
            f"those of the first are in {self._folder}: look at them, or lower the learning rate, or set "
            "train_config.grad_clipping; --continue_train goes on from the newest checkpoint"
        )

    def _write(self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome) -> Path:
        """One file for each batch: several may be skipped on the way to one step."""
        path = self._folder / f"step-{progress.step + 1}.jsonl"
        if progress.skipped_batches:
            path = path.with_stem(f"{path.stem}-skipped-{progress.skipped_batches + 1}")
        write_rows(path, batch, outcome.predictions)
        return path


def is_power_of_ten(count: int) -> bool:
    """10, 100, 1,000, ...: what is told by tenfolds stays short however long a run is."""
    return count >= 10 and set(str(count)[1:]) == {"0"} and str(count)[0] == "1"


LEAST_SCALE = 2.0**-16
"""Below, gradients would be infinite in FP16 whatever the scale: it is not the scale that makes them so."""


class Overflows:
    """Writes such batches into the log; the first batches of a run often are, until the scale fits."""

    def __init__(self, scaling: LossScaling | None, log: StepLog) -> None:
        self._scaling, self._log = scaling, log

    def meet(self, progress: TrainingProgress, batch: Batch) -> None:
        """Tell the log, or raise an error where no scale is small enough."""
        assert self._scaling is not None, "only scaled gradients overflow"
        scale = self._scaling.scale
        if scale < LEAST_SCALE:
            raise DataError(
                f"step {progress.step + 1}: a gradient on {batch.num_rows} rows{place(batch)} is not finite in FP16 at "
                f"any scale (now {scale:g}), though the loss is; use train_config.mixed_precision: BF16, or none"
            )
        facts = {"overflowed_batches": progress.overflowed_batches + 1, "num_rows": batch.num_rows}
        self._log.tell("overflow", progress.step + 1, **facts, loss_scale=scale)


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
