"""How far a run is, and what is due when."""

from dataclasses import asdict, dataclass

from penstock.runtime.world import State


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

    def count(self, num_rows: int, loss: float) -> None:
        self.step += 1
        self.epoch_steps += 1
        self.rows += num_rows
        self.window_steps += 1
        self.window_loss += loss

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

    def state_dict(self) -> State:
        return asdict(self)

    def load_state_dict(self, state: State) -> None:
        for name, value in state.items():
            setattr(self, name, value)


@dataclass(frozen=True, slots=True)
class Every:
    """Due when the completed steps (or epochs) are a multiple; never, when neither is given."""

    steps: int | None = None
    epochs: int | None = None

    def due_after_step(self, progress: TrainingProgress) -> bool:
        return self.steps is not None and progress.step % self.steps == 0

    def due_after_epoch(self, progress: TrainingProgress) -> bool:
        return self.epochs is not None and progress.epoch % self.epochs == 0


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
