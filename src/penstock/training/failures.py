"""Batches that moved nothing: a loss that is not finite, an overflow, not enough memory."""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import format_size
from penstock.readers.stream import locate
from penstock.runtime.memory import MemoryMonitor
from penstock.tensors.batch import Batch, Position
from penstock.training.events import TrainingProgress
from penstock.training.precision import LossScaling
from penstock.training.sections import OnNonfinite, TrainConfig
from penstock.training.step import StepOutcome

logger = logging.getLogger(__name__)

MAX_FILES = 10
"""Of so many batches that are skipped the rows are written."""
MAX_WARNINGS = 3
"""So many skipped batches are reported one by one; after them, every tenfold of their number."""
MIN_SCALE = 2.0**-16
"""Below, gradients would be infinite in FP16 whatever the scale: it is not the scale that makes them so."""
IN_FP16 = "numbers of FP16 end at 65,504: use a normalizer for larger ones, or mixed_precision: BF16; or "
"""The first thing to think of there."""
OUT_OF_MEMORY = ("DefaultCPUAllocator", "bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED")
"""Words of errors that say so, though their class does not."""


@dataclass(slots=True)
class Failures:
    """Decides about such batches: writes their rows aside, and raises an error or lets them be passed over."""

    folder: Path
    train: TrainConfig
    batch_cost_size: int | None
    monitor: MemoryMonitor
    device: torch.device
    scaling: LossScaling | None
    _num_in_a_row: int = field(default=0, init=False)
    _step_of_last: int | None = field(default=None, init=False)

    def nonfinite(self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome) -> None:
        """Raise with the rows' position, or let the batch be passed over, with a warning of which there are never many.

        Too many in a row are an error all the same: then the parameters are at fault, and no later batch is better.
        """
        self._num_in_a_row = self._num_in_a_row + 1 if self._step_of_last == progress.step else 1
        self._step_of_last = progress.step
        num_skipped, is_error = progress.skipped_batches + 1, self.train.on_nonfinite is OnNonfinite.error
        folder = path = self.folder / "nonfinite"
        if num_skipped <= MAX_FILES or is_error:
            # One file for each batch: several may be skipped on the way to one step.
            several = f"-skipped-{num_skipped}" if num_skipped > 1 else ""
            path = folder / f"step-{progress.step + 1}{several}.jsonl"
            write_rows(path, batch, outcome.predictions)
        found = (
            f"step {progress.step + 1}: the loss is {outcome.loss} on {batch.num_rows:,} rows{_where(batch)}"
            f"{first_bad_row(batch, outcome.predictions)}; the rows are in {path}"
        )
        if is_error:
            raise DataError(
                f"{found}: {IN_FP16 if self.train.mixed_precision == 'FP16' else ''}look at them, or lower the "
                "learning rate, or pass over such batches with train_config.on_nonfinite: skip"
            )
        if self._num_in_a_row >= self.train.max_skipped_in_a_row:
            raise DataError(
                f"step {progress.step + 1}: the loss of {self._num_in_a_row:,} batches in a row is not finite "
                f"(now {outcome.loss}; train_config.max_skipped_in_a_row), which is hardly the fault of their rows; "
                f"those of the first are in {folder}: look at them, or lower the learning rate, or set "
                "train_config.grad_clipping; --continue_train goes on from the newest checkpoint"
            )
        if num_skipped <= MAX_WARNINGS:
            logger.warning("%s; skipped", found)
        elif re.fullmatch("10+", str(num_skipped)):
            logger.warning("%s batches skipped, since their loss is not finite", f"{num_skipped:,}")

    def overflow(self, progress: TrainingProgress, batch: Batch) -> float:
        """The next scale; an error where no scale is small enough. The first batches of a run often overflow."""
        assert self.scaling is not None, "only scaled gradients overflow"
        scale = self.scaling.scale
        if scale < MIN_SCALE:
            raise DataError(
                f"step {progress.step + 1}: a gradient on {batch.num_rows} rows{_where(batch)} is not finite in "
                f"FP16 at any scale (now {scale:g}), though the loss is; "
                "use train_config.mixed_precision: BF16, or none"
            )
        return scale

    def memory_shortage(self, error: BaseException) -> str | None:
        """What was asked for and what was taken, where an error is for lack of memory; None for all others."""
        cause = error
        while cause.__cause__ is not None:  # a custom part that fails is reported as such
            cause = cause.__cause__
        signs = any(sign in str(cause) for sign in OUT_OF_MEMORY)
        if not signs and not isinstance(cause, MemoryError | torch.OutOfMemoryError):
            return None
        logger.debug("memory ran out", exc_info=error)
        if self.device.type == "cuda":
            taken, limit = torch.cuda.memory_allocated(self.device), torch.cuda.mem_get_info(self.device)[1]
            use = f"{format_size(taken)} of {format_size(limit)} of {self.device} were taken"
        else:
            limit = self.monitor.report.limit_bytes
            use = f"{format_size(self.monitor.sample())} of memory.limit {format_size(limit)} were taken"
        found = re.search(r"tried to allocate ([\d.]+) ?(bytes|[KMGT]iB)", str(cause), re.IGNORECASE)
        if found is None:
            return use
        amount, unit = found.groups()
        size = format_size(int(amount)) if unit == "bytes" else f"{float(amount):g}{unit}"
        return f"{size} were asked for, {use}"

    def out_of_memory(self, progress: TrainingProgress, batch: Batch, shortage: str) -> BudgetExceeded:
        """The error, after the rows were written aside where there is memory for that."""
        path = self.folder / "out_of_memory" / f"step-{progress.step + 1}.jsonl"
        rows = f"its rows are in {path}"
        try:
            write_rows(path, batch, {})
        except (MemoryError, RuntimeError, OSError) as error:
            reason = str(error) or "there is no memory for it either"
            rows = f"its rows could not be written to {path}: {reason}"
        by_cost = self.batch_cost_size is not None
        cost = f", its cost at most {self.batch_cost_size:,}" if by_cost else ""
        setting = "data_config.batch_cost_size" if by_cost else "data_config.batch_size"
        return BudgetExceeded(
            f"step {progress.step + 1}: memory ran out on a batch of {batch.num_rows:,} rows{_where(batch)}, "
            f"{format_size(batch.nbytes)} as read{cost}: {shortage}; {rows}; lower {setting}, "
            "or the widths of tables and layers, then go on with --continue_train"
        )


def _where(batch: Batch) -> str:
    return f" ({batch.position})" if batch.position is not None else ""


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
            is_good = torch.isfinite(wide)
            if name.startswith("logits") and wide.shape[1] > 1:
                # Of several logits, -inf beside finite ones is that of a class which a mask rules out.
                is_good |= torch.isneginf(wide) & is_good.any(dim=1, keepdim=True)
            bad |= ~is_good.all(dim=1)
    count = int(bad.sum())
    if not count:
        return ""
    row = int(bad.nonzero()[0])
    origin = _origin(batch.position, row)
    where = f"row {origin['row']} of {origin['file']}" if origin else f"row {row} of the batch"
    return f"; predictions of {count:,} of them are not finite, the first {where}"


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
    return [_as_json(value) for value in (wide.float() if wide.is_floating_point() else wide).tolist()]


def _as_json(value: Any) -> Any:
    """JSON has no numbers that are not finite."""
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    if value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, value)
