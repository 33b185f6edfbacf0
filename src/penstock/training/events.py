"""How far a run is, what is due when, and what a Trainer reports on the way, in the order in which it happens.

Listeners take the events that they know and pass over the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.training.evaluate import Evaluation


@dataclass(slots=True)
class TrainingProgress:
    """Completed steps and epochs, and the mean loss since the last line of the log."""

    step: int = 0
    epoch: int = 0
    rows: int = 0
    epoch_steps: int = 0
    window_steps: int = 0
    window_loss: float = 0.0
    skipped_batches: int = 0
    """Batches whose loss was not finite, and that were passed over; they are no steps."""
    skipped_rows: int = 0
    overflowed_batches: int = 0
    """Batches of which a gradient was too large for FP16, and that were passed over; they are no steps either."""
    epoch_overflows: int = 0
    steps_before: int = 0
    """Steps and epochs on data that a run was moved on from: what is left to do is counted from here."""
    epochs_before: int = 0
    evaluated_step: int = -1
    """The last step from whose evaluation schedules, early stopping and callbacks have learned, each once."""

    def move_to_new_data(self) -> None:
        """What was done counts, an epoch that was begun too; what is left to do is that of the new data.

        So are the evaluations to learn from.
        """
        if self.epoch_steps or self.epoch_overflows:
            self.end_epoch()
        self.steps_before, self.epochs_before = self.step, self.epoch
        self.evaluated_step = self.step

    def end_epoch(self) -> None:
        self.epoch += 1
        self.epoch_steps = self.epoch_overflows = 0


@dataclass(frozen=True, slots=True)
class Every:
    """Due when the completed steps (or epochs) are a multiple; never, when neither is given."""

    steps: int | None = None
    epochs: int | None = None

    def due(self, progress: TrainingProgress, *, after_epoch: bool = False) -> bool:
        interval, done = (self.epochs, progress.epoch) if after_epoch else (self.steps, progress.step)
        return interval is not None and done % interval == 0


@dataclass(frozen=True, slots=True)
class End:
    """Where training ends: exactly one of the two is given. Counted from the first step on these data."""

    steps: int | None = None
    epochs: int | None = None

    def reached(self, progress: TrainingProgress) -> bool:
        if self.steps is not None:
            return progress.step - progress.steps_before >= self.steps
        return self.epochs is not None and progress.epoch - progress.epochs_before >= self.epochs


@dataclass(frozen=True, slots=True)
class Timetable:
    """When training ends, and when it logs, saves and evaluates on the way."""

    end: End
    save_every: Every = Every()
    evaluate_every: Every = Every()
    log_every: Every = Every()


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent on steps, and how many of them waiting for data."""

    waiting: float = 0.0
    working: float = 0.0

    def waiting_share(self) -> float:
        total = self.waiting + self.working
        return self.waiting / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Started:
    """The first batch of this process was tried: from here on a run leaves files."""

    step: int
    """Steps that were completed before it."""


@dataclass(frozen=True, slots=True)
class Step:
    """Parameters moved; their gradients are still there."""

    progress: TrainingProgress
    loss: float
    stopwatch: Stopwatch


@dataclass(frozen=True, slots=True)
class Skipped:
    """A batch moved nothing: its loss was not finite or, in FP16, a gradient was too large."""

    step: int
    """The step that it would have been."""
    num_rows: int
    num_batches: int
    """Batches that were passed over for the same reason so far."""
    loss_scale: float | None = None
    """After an overflow in FP16, the scale of the next loss."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Numbers since the last of these events."""

    progress: TrainingProgress
    numbers: Mapping[str, float]
    learning_rates: Mapping[str, float]
    train_metrics: Mapping[str, float]
    remarks: Mapping[str, str]

    @property
    def values(self) -> dict[str, float]:
        rates = {f"learning_rate/{name}": rate for name, rate in self.learning_rates.items()}
        return {**self.numbers, **rates, **self.train_metrics}


@dataclass(frozen=True, slots=True)
class Evaluated:
    step: int
    epoch: int
    evaluation: Evaluation
    is_recalled: bool = False
    """Made by a run that was killed before all had learned from it."""
    is_repeated: bool = False
    """Made once more, since its record was lost: all have learned from it before."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint is whole. A run that continues reports the one it starts from again."""

    step: int
    evaluated: Mapping[str, float]
    """What was evaluated last when it was written."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over, saved and evaluated."""

    progress: TrainingProgress
    evaluated: Mapping[str, float]
    stopped_because: str | None
    restored_step: int | None
    """The best step, where the run went back to it."""
    is_repeated: bool = False
    """An earlier process reported the same end, and this one had nothing to do."""


Event = Started | Step | Skipped | Logged | Evaluated | Saved | Ended
Listener = Callable[[Event], None]
