"""What a loop is given: batches that are numbers, a step that computes nothing, hooks that write down."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.training.progress import TrainingProgress
from penstock.training.step import StepOutcome
from penstock.training.train import Stopwatch


@dataclass(frozen=True)
class FakeBatch:
    """A number for its content."""

    number: int
    num_rows: int = 10
    position: str | None = None


@dataclass
class FakeBatches:
    """The same batches in every epoch, resumable like real ones."""

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


@dataclass
class FakeHooks:
    """Writes down who was called when; stops where it is told to."""

    events: list[Any] = field(default_factory=list)
    stop_when: Callable[[], bool] = lambda: False

    def on_step(
        self, progress: TrainingProgress, batch: FakeBatch, outcome: StepOutcome, stopwatch: Stopwatch
    ) -> None:
        self.events.append(f"step {progress.step}")

    def on_nonfinite(self, progress: TrainingProgress, batch: FakeBatch, outcome: StepOutcome) -> None:
        self.events.append(f"skip {batch.number}")

    def on_overflow(self, progress: TrainingProgress, batch: FakeBatch) -> None:
        self.events.append(f"overflow {batch.number}")

    def on_save_due(self, progress: TrainingProgress) -> None:
        self.events.append(f"save {progress.step}")

    def on_evaluate_due(self, progress: TrainingProgress) -> None:
        self.events.append(f"evaluate {progress.step}")

    def stop_requested(self) -> bool:
        return self.stop_when()
