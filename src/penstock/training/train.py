"""The training loop: take a batch, take a step, tell those who listen."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock.config.errors import DataError
from penstock.runtime.world import Resumable
from penstock.tensors.batch import Batch
from penstock.training.progress import End, Every, TrainingProgress
from penstock.training.step import StepOutcome


class BatchSource(Resumable, Protocol):
    """Batches of one epoch after another; its state is the place after the last batch given out."""

    def __iter__(self) -> Iterator[Batch]: ...

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        ...


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent on steps, and how many of them waiting for data."""

    waiting: float = 0.0
    working: float = 0.0

    def waiting_share(self) -> float:
        """Share of the time that went into waiting for data."""
        total = self.waiting + self.working
        return self.waiting / total if total else 0.0


class Hooks(Protocol):
    """Who listens to a training run, and may act on it."""

    def on_step(
        self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome, stopwatch: Stopwatch
    ) -> None:
        """A step is done."""
        ...

    def on_nonfinite(self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome) -> None:
        """The loss of this batch is not finite and no step was taken: raise an error, or let it be passed over."""
        ...

    def on_overflow(self, progress: TrainingProgress, batch: Batch) -> None:
        """A gradient of this batch was too large for FP16 and no step was taken; the next scale is smaller."""
        ...

    def on_save_due(self, progress: TrainingProgress) -> None:
        """A checkpoint should be written now."""
        ...

    def on_evaluate_due(self, progress: TrainingProgress) -> None:
        """The model should be evaluated now."""
        ...

    def stop_requested(self) -> bool:
        """Whether to stop after this step."""
        ...


@dataclass(frozen=True, slots=True)
class Timetable:
    """When training ends, and when it saves and evaluates on the way."""

    end: End
    save_every: Every
    evaluate_every: Every


def train(
    step: Callable[[Batch, TrainingProgress], StepOutcome],
    batches: BatchSource,
    progress: TrainingProgress,
    timetable: Timetable,
    hooks: Hooks,
) -> None:
    """Train until the end is reached or a hook asks to stop; `progress` and `batches` hold the place."""
    stopwatch = Stopwatch()
    while not timetable.end.reached(progress):
        for batch in timed(batches, stopwatch):
            outcome = step(batch, progress)
            if not outcome.taken:
                pass_over(batch, outcome, progress, hooks)
                if hooks.stop_requested():
                    return
                continue
            progress.count(batch.num_rows, outcome.loss)
            hooks.on_step(progress, batch, outcome, stopwatch)
            tell_what_is_due(hooks, timetable, progress, Every.due_after_step)
            if hooks.stop_requested() or timetable.end.reached(progress):
                return
        require_use_of_epoch(progress)
        progress.end_epoch()
        batches.set_epoch(progress.epoch)
        if progress.step:
            tell_what_is_due(hooks, timetable, progress, Every.due_after_epoch)
        if hooks.stop_requested():
            return
    if not progress.step:
        raise only_overflows(progress)


def pass_over(batch: Batch, outcome: StepOutcome, progress: TrainingProgress, hooks: Hooks) -> None:
    """Count a batch that moved nothing, unless a hook would rather raise an error."""
    if outcome.overflowed:
        hooks.on_overflow(progress, batch)
        progress.overflow()
    else:
        hooks.on_nonfinite(progress, batch, outcome)
        progress.skip(batch.num_rows)


def tell_what_is_due(
    hooks: Hooks,
    timetable: Timetable,
    progress: TrainingProgress,
    due: Callable[[Every, TrainingProgress], bool],
) -> None:
    """Save first, so that an evaluation always speaks of a checkpoint that exists."""
    if due(timetable.save_every, progress):
        hooks.on_save_due(progress)
    if due(timetable.evaluate_every, progress):
        hooks.on_evaluate_due(progress)


def require_use_of_epoch(progress: TrainingProgress) -> None:
    """An epoch without a step is an error, unless overflows have at least lowered the scale for the next."""
    if not progress.epoch_steps and not progress.epoch_overflows:
        raise no_step(progress) if progress.skipped_batches else no_batch("train_input_path")


def no_batch(key: str) -> DataError:
    """The error for data that are there but give nothing."""
    return DataError(
        f"{key}: the files give no batch: they have no rows, or fewer than data_config.batch_size with drop_remainder"
    )


def no_step(progress: TrainingProgress) -> DataError:
    """The error for an epoch of which every batch was passed over: the next one would be no other."""
    return DataError(
        f"epoch {progress.epoch}: no batch gave a finite loss, {progress.skipped_batches:,} were skipped; "
        "look at the rows in model_dir/nonfinite, or lower the learning rate"
    )


def only_overflows(progress: TrainingProgress) -> DataError:
    """The error for a run that came to its end before the scale of FP16 had fallen far enough for a step."""
    return DataError(
        f"the gradients of all {progress.overflowed_batches:,} batches were too large for FP16; "
        "lower train_config.grad_scaler.init_scale, or use mixed_precision: BF16"
    )


def timed(batches: BatchSource, stopwatch: Stopwatch) -> Iterator[Batch]:
    """The same batches, with the time they kept us waiting and the time we took over them."""
    source = iter(batches)
    while True:
        asked_at = time.perf_counter()
        batch = next(source, None)
        if batch is None:
            return
        given_at = time.perf_counter()
        stopwatch.waiting += given_at - asked_at
        yield batch
        stopwatch.working += time.perf_counter() - given_at


def place(batch: Batch) -> str:
    """Where a batch came from, for a message."""
    return f" ({batch.position})" if batch.position is not None else ""
