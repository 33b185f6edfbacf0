"""What is due when: every so many steps, or every so many epochs."""

from dataclasses import dataclass

from penstock.loops.progress import TrainingProgress


@dataclass(frozen=True, slots=True)
class Every:
    """Due when the completed steps (or epochs) are a multiple; never, when neither is given."""

    steps: int | None = None
    epochs: int | None = None

    def due_after_step(self, progress: TrainingProgress) -> bool:
        """Whether the step that was just completed is one of them."""
        return self.steps is not None and progress.step % self.steps == 0

    def due_after_epoch(self, progress: TrainingProgress) -> bool:
        """Whether the epoch that was just completed is one of them."""
        return self.epochs is not None and progress.epoch % self.epochs == 0


@dataclass(frozen=True, slots=True)
class End:
    """Where training ends: exactly one of the two is given. Counted from the first step on these data."""

    steps: int | None = None
    epochs: int | None = None

    def reached(self, progress: TrainingProgress) -> bool:
        """Whether there is nothing left to train."""
        if self.steps is not None:
            return progress.step - progress.steps_before >= self.steps
        return self.epochs is not None and progress.epoch - progress.epochs_before >= self.epochs
