"""What becomes of a batch whose loss is not a finite number."""

import logging
from pathlib import Path

from penstock.config.errors import DataError
from penstock.loops.progress import TrainingProgress
from penstock.loops.rows_aside import first_bad_row, write_rows
from penstock.loops.sections import OnNonfinite, TrainConfig
from penstock.loops.step import StepOutcome
from penstock.loops.train import place
from penstock.tensors.batch import Batch

logger = logging.getLogger(__name__)

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
