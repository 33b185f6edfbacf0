"""What a trainer is given: batches that are numbers, a step that computes nothing, checkpoints in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.runtime.memory import MemoryMonitor
from penstock.training.callbacks import Control
from penstock.training.events import (
    Ended,
    Evaluated,
    Event,
    Saved,
    Skipped,
    Step,
    Timetable,
    TrainingProgress,
)
from penstock.training.model_dir import ModelDir
from penstock.training.step import LearningRates, Pipeline, StepOutcome
from penstock.training.task_metrics import TaskMetrics
from penstock.training.trainer import Trainer


@dataclass(frozen=True)
class FakeBatch:
    """A number for its content."""

    number: int
    num_rows: int = 10
    position: str | None = None
    resume_state: dict[str, int] | None = None


@dataclass
class FakeBatches:
    """The same batches in every epoch, resumable like real ones; it hands out more than was finished."""

    batches: list[FakeBatch]
    events: list[Any] = field(default_factory=list)
    epoch: int = 0
    given: int = 0

    def __iter__(self) -> Iterator[FakeBatch]:
        for batch in self.batches[self.given :]:
            self.given += 1
            yield batch

    def set_epoch(self, epoch: int) -> None:
        self.epoch, self.given = epoch, 0
        self.events.append(f"epoch {epoch}")

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "given": self.given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.given = state["epoch"], state["given"]


class FakeCheckpoints:
    """Remembers where in the data each step was saved."""

    def __init__(self, saved_step: int | None = None) -> None:
        self.saved_step, self.positions = saved_step, {}

    def save(self, progress: TrainingProgress, position: dict[str, int]) -> None:
        self.saved_step = progress.step
        self.positions[progress.step] = position


class FakeFailures:
    """Lets every batch be passed over."""

    scaling = None

    def nonfinite(self, *_: object) -> None:
        pass

    def overflow(self, *_: object) -> float:
        return 1.0


def brief(event: Event) -> str | None:
    """One event in a few letters."""
    match event:
        case Step():
            return f"step {event.progress.step}"
        case Skipped(loss_scale=None):
            return f"skip {event.num_batches}"
        case Skipped():
            return f"overflow {event.num_batches}"
        case Evaluated():
            return f"evaluate {event.step}"
        case Saved():
            return f"save {event.step}"
        case Ended():
            return "end"
        case _:
            return None


def make_trainer(
    source: FakeBatches,
    timetable: Timetable,
    folder: Path,
    *,
    step: Any = lambda batch, progress: StepOutcome(0.5, {}),
    progress: TrainingProgress | None = None,
    listeners: Any = (),
    **options: Any,
) -> Trainer:
    """A trainer whose events are added to the source's list."""
    progress = progress or TrainingProgress()
    rates = LearningRates({})

    def listen(event: Event) -> None:
        if (text := brief(event)) is not None:
            source.events.append(text)

    given: dict[str, Any] = {
        "pipeline": Pipeline(step, progress),
        "batches": source,
        "progress": progress,
        "timetable": timetable,
        "rates": rates,
        "metrics": TaskMetrics({}),
        "checkpoints": FakeCheckpoints(),
        "folder": ModelDir(folder),
        "failures": FakeFailures(),
        "monitor": MemoryMonitor(2**40, None),
        "control": Control(rates),
        "listeners": [listen, *listeners],
    }
    return Trainer(**given | options)
