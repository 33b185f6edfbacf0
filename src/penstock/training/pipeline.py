"""From batches to finished steps, and what processes agree on between them.

A Trainer knows two names: a `Pipeline`, which may hold batches in flight, and an `Agreement`. Here are those of one
process: a pipeline that holds none, and an agreement that returns its argument.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock.tensors.batch import Batch
from penstock.training.progress import TrainingProgress
from penstock.training.step import StepOutcome


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent on steps, and how many of them waiting for data."""

    waiting: float = 0.0
    working: float = 0.0

    def waiting_share(self) -> float:
        total = self.waiting + self.working
        return self.waiting / total if total else 0.0


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A batch, and what came of it; `batch.resume_state` says where the data go on."""

    batch: Batch
    outcome: StepOutcome


class Pipeline(Protocol):
    """Takes batches in and gives finished steps out, in the same order."""

    stopwatch: Stopwatch
    entered: Batch | None
    """The batch that is worked on; None while one is waited for."""

    def progress(self, batches: Iterator[Batch]) -> FinishedStep | None:
        """The next finished step; None when the batches are at their end and none is in flight."""
        ...


class PlainPipeline:
    """One batch in, one step out."""

    def __init__(
        self, step: Callable[[Batch, TrainingProgress], StepOutcome], progress: TrainingProgress
    ) -> None:
        self.stopwatch = Stopwatch()
        self.entered: Batch | None = None
        self._step, self._progress = step, progress
        self._given_at: float | None = None

    def progress(self, batches: Iterator[Batch]) -> FinishedStep | None:
        asked_at = time.perf_counter()
        if self._given_at is not None:
            # Logging, saving and evaluating count as work: the model did not wait for data meanwhile.
            self.stopwatch.working += asked_at - self._given_at
        self.entered = self._given_at = None  # the last batch is freed while the next one is waited for
        batch = next(batches, None)
        if batch is None:
            return None
        self.entered, self._given_at = batch, time.perf_counter()
        self.stopwatch.waiting += self._given_at - asked_at
        return FinishedStep(batch, self._step(batch, self._progress))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What this process would do after a step."""

    stop: bool = False
    save: bool = False


class Agreement(Protocol):
    """All processes take the same number of steps, and stop and save after the same ones."""

    def over(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches that all processes take, as many on each, padded to the rows of the largest."""
        ...

    def decide(self, wishes: Wishes) -> Wishes:
        """What all do after the step that was finished last."""
        ...


class OneProcess:
    """Nobody to ask."""

    def over(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        return batches

    def decide(self, wishes: Wishes) -> Wishes:
        return wishes
