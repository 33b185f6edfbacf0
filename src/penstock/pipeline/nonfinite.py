"""What becomes of a batch whose loss is not a finite number."""

import logging
from pathlib import Path

from penstock.config.errors import DataError
from penstock.loops.progress import TrainingProgress
from penstock.loops.rows_aside import first_bad_row, write_rows
from penstock.loops.sections import OnNonfinite
from penstock.loops.step import StepOutcome
from penstock.loops.train import place
from penstock.tensors.batch import Batch

logger = logging.getLogger(__name__)

MAX_FILES = 10
"""Of so many batches that are skipped the rows are written; of others only their place is told."""


class NonfiniteBatches:
    """Writes the rows of such batches aside, then stops the run or lets it pass over them."""

    def __init__(self, folder: Path, choice: OnNonfinite) -> None:
        self._folder, self._choice = folder, choice

    def meet(self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome) -> None:
        """Raise with the rows' place, or warn."""
        found = (
            f"step {progress.step + 1}: the loss is {outcome.loss} on {batch.num_rows} rows{place(batch)}"
            f"{first_bad_row(batch, outcome.predictions)}"
        )
        if self._choice is OnNonfinite.error:
            path = self._write(progress, batch, outcome)
            raise DataError(
                f"{found}; the rows are in {path}: look at them, or lower the learning rate, "
                "or pass over such batches with train_config.on_nonfinite: skip"
            )
        if progress.skipped_batches < MAX_FILES:
            found += f"; the rows are in {self._write(progress, batch, outcome)}"
        logger.warning("%s; skipped", found)

    def _write(self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome) -> Path:
        """One file for each batch: several may be skipped on the way to one step."""
        path = self._folder / f"step-{progress.step + 1}.jsonl"
        if progress.skipped_batches:
            path = path.with_stem(f"{path.stem}-skipped-{progress.skipped_batches + 1}")
        write_rows(path, batch, outcome.predictions)
        return path
