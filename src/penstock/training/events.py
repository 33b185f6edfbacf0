"""What a Trainer tells, in the order in which it happens. Listeners take what they know and pass over the rest."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.training.evaluate import Evaluation
from penstock.training.progress import TrainingProgress
from penstock.training.step import Stopwatch


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
    """An evaluation is there."""

    step: int
    epoch: int
    evaluation: Evaluation
    is_recalled: bool = False
    """Made by a run that was killed before all had learned from it."""
    is_repeated: bool = False
    """Made once more, since its record was lost: all have learned from it before."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint is whole. A run that continues tells of the one it starts from again."""

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
