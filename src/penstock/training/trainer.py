"""The trainer: draws finished steps from a pipeline, decides what is due, and reports by events what happened."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from penstock.config.errors import DataError, PenstockError
from penstock.runtime.durable import replace_text
from penstock.runtime.memory import MemoryMonitor
from penstock.runtime.world import Resumable, State
from penstock.tensors.batch import Batch
from penstock.training.best import MARK, EarlyStop
from penstock.training.callbacks import Control
from penstock.training.checkpoints import RunCheckpoints
from penstock.training.evaluate import Evaluation
from penstock.training.events import (
    Ended,
    Evaluated,
    Event,
    Listener,
    Logged,
    Saved,
    Skipped,
    Started,
    Step,
    Timetable,
    TrainingProgress,
)
from penstock.training.failures import Failures
from penstock.training.model_dir import ModelDir
from penstock.training.step import Agreement, FinishedStep, LearningRates, Pipeline, Wishes
from penstock.training.task_metrics import TaskMetrics


class BatchSource(Resumable, Protocol):
    def __iter__(self) -> Iterator[Batch]: ...

    def set_epoch(self, epoch: int) -> None: ...


@dataclass
class Trainer:
    """Trains one run to its end. It alone decides; nothing is written before the first batch was tried."""

    pipeline: Pipeline
    batches: BatchSource
    progress: TrainingProgress
    timetable: Timetable
    rates: LearningRates
    metrics: TaskMetrics
    """What is followed during training."""
    checkpoints: RunCheckpoints
    folder: ModelDir
    failures: Failures
    monitor: MemoryMonitor
    control: Control
    """What callbacks ask for."""
    listeners: Sequence[Listener] = ()
    """In the order in which they are called."""
    evaluate_model: Callable[[Callable[[], bool]], Evaluation | None] | None = None
    """One evaluation, which ends with None once the function it is given says so; None: nothing to evaluate on."""
    early_stop: EarlyStop | None = None
    measured: Callable[[], dict[str, float]] = dict
    """What a line of the log says about the machine, since it was last asked."""
    interrupted: Callable[[], bool] = lambda: False
    """After a signal, or past the memory limit where that is to stop the run."""
    agreement: Agreement = field(default_factory=Agreement)

    evaluation: Evaluation | None = field(default=None, init=False)
    evaluated_step: int | None = field(default=None, init=False)
    """The step of which `evaluation` speaks."""
    restored_step: int | None = field(default=None, init=False)
    """The step to whose parameters the run went back at its end; None where the last one was the best."""
    _position: State | None = field(default=None, init=False)
    """Where the data go on after the last finished batch; None at the begin of an epoch."""
    _has_started: bool = field(default=False, init=False)
    _ended_before: bool = field(default=False, init=False)
    _logged_step: int | None = field(default=None, init=False)
    _counted_from: tuple[float, int, int] = field(default=(0.0, 0, 0), init=False)
    """Time, step and rows at the last line of the log."""

    @property
    def stop_reason(self) -> str | None:
        """Why the run ends before its time, by its own choice."""
        if self.early_stop is not None and self.early_stop.due:
            return self.early_stop.reason()
        return self.control.stop_reason

    def run(self) -> Ended:
        """Train until the end is reached or somebody asks to stop; the last step is saved and evaluated."""
        progress, early_stop = self.progress, self.early_stop
        self._counted_from = (time.perf_counter(), progress.step, progress.rows)
        if self.checkpoints.saved_step is not None:
            self._catch_up()
        if self.stop_reason is None:
            self._train()
        # What is not done yet for the last step; a run that was interrupted is saved only.
        if not self.interrupted() and progress.window_steps and self._logged_step != progress.step:
            self._log(closing=False)
        self.save()
        if not self.interrupted():
            self.evaluate()
            if early_stop is not None and early_stop.restore_best and early_stop.best_step is not None:
                self._restore_best(early_stop, early_stop.best_step)
        is_repeated = self._ended_before and not self._has_started
        evaluated = {} if self.evaluation is None else self.evaluation.values
        ended = Ended(progress, evaluated, self.stop_reason, self.restored_step, is_repeated)
        self.emit(ended)
        return ended

    def _train(self) -> None:
        progress, end = self.progress, self.timetable.end
        while not end.reached(progress):
            batches = self.agreement.over(iter(self.batches))
            while (done := self._next_step(batches)) is not None:
                self._position, is_step = done.batch.resume_state, done.outcome.taken
                self.count(done)
                del done  # the next step needs the memory
                if is_step:
                    self._do_due()
                if self._decide() or end.reached(progress):
                    return
            if not progress.epoch_steps and not progress.epoch_overflows:
                if not progress.skipped_batches:
                    raise no_batch("train_input_path")
                raise DataError(
                    f"epoch {progress.epoch}: no batch gave a finite loss, {progress.skipped_batches:,} were skipped; "
                    "look at the rows in model_dir/nonfinite, or lower the learning rate"
                )
            progress.end_epoch()
            self.batches.set_epoch(progress.epoch)
            self._position = None
            if progress.step:
                self._do_due(after_epoch=True)
            if self._decide():
                return
        if not progress.step:
            raise DataError(
                f"the gradients of all {progress.overflowed_batches:,} batches were too large for FP16; "
                "lower train_config.grad_scaler.init_scale, or use mixed_precision: BF16"
            )

    def _next_step(self, batches: Iterator[Batch]) -> FinishedStep | None:
        try:
            return self.pipeline.progress(batches)
        except (RuntimeError, MemoryError, PenstockError) as error:
            batch = self.pipeline.entered
            shortage = self.failures.memory_shortage(error) if batch is not None else None
            if batch is None or shortage is None:
                raise
        # Only here, where the error is gone, are the tensors of the step gone too, and there is memory to write.
        raise self.failures.out_of_memory(self.progress, batch, shortage)

    def count(self, done: FinishedStep) -> None:
        """Count a step, and log it when it is its turn; or a batch that moved nothing, unless that is an error."""
        progress, (batch, outcome) = self.progress, done
        if not outcome.taken and not outcome.overflowed:
            self.failures.nonfinite(progress, batch, outcome)
        if not self._has_started:
            self._has_started = True
            self.emit(Started(progress.step))
        if outcome.taken:
            progress.step += 1
            progress.epoch_steps += 1
            progress.rows += batch.num_rows
            progress.window_steps += 1
            progress.window_loss += outcome.loss
            if self.metrics.bound:
                self.metrics.update(outcome.predictions, batch)
            self.emit(Step(progress, outcome.loss, self.pipeline.stopwatch))
            if self.timetable.log_every.due(progress):
                self._log()
        elif outcome.overflowed:
            scale = self.failures.overflow(progress, batch)
            progress.overflowed_batches += 1
            progress.epoch_overflows += 1
            self.emit(Skipped(progress.step + 1, batch.num_rows, progress.overflowed_batches, scale))
        else:
            progress.skipped_batches += 1
            progress.skipped_rows += batch.num_rows
            self.emit(Skipped(progress.step + 1, batch.num_rows, progress.skipped_batches))

    def _do_due(self, *, after_epoch: bool = False) -> None:
        """Saving comes first, so that an evaluation always speaks of a checkpoint that exists."""
        if self.timetable.save_every.due(self.progress, after_epoch=after_epoch):
            self.save()
        if self.timetable.evaluate_every.due(self.progress, after_epoch=after_epoch):
            self.evaluate()

    def _decide(self) -> bool:
        """Agree with all ranks, and save if a callback asked for it; gives whether to stop after this step."""
        stop = self.interrupted() or self.stop_reason is not None
        decided = self.agreement.decide(Wishes(stop, self.control.save_asked))
        self.control.save_asked = False
        if decided.save:
            self.save()
        return decided.stop

    def save(self) -> None:
        """Write a checkpoint, unless this step has one: the end of an epoch may be the turn of steps too."""
        if self.checkpoints.saved_step == self.progress.step:
            return
        position = self.batches.state_dict() if self._position is None else self._position
        with self.monitor.stage("save"):
            self.checkpoints.save(self.progress, position)
        self.emit(Saved(self.progress.step, {} if self.evaluation is None else self.evaluation.values))

    def evaluate(self) -> None:
        """Evaluate the model as it is now, let everyone learn from the result, and keep it."""
        progress = self.progress
        if self.evaluate_model is None or self.evaluated_step == progress.step:
            return
        started_at = time.perf_counter()
        evaluation = self.evaluate_model(self.interrupted)
        if evaluation is None:
            return
        self.evaluation, self.evaluated_step = evaluation, progress.step
        record = evaluation.as_record(progress.step, progress.epoch)
        record["seconds"] = round(time.perf_counter() - started_at, 3)
        self._learn_from(evaluation, is_recalled=False)
        if self.checkpoints.saved_step == progress.step:
            record["checkpoint"] = f"step-{progress.step}"
        self.folder.evaluations.write(record)

    def _learn_from(self, evaluation: Evaluation, is_recalled: bool) -> None:
        """Everyone who learns from evaluations does so once, also when a run was killed in between.

        The best checkpoint must exist to go back to, whether or not this step's turn to be saved has come.
        """
        progress, early_stop = self.progress, self.early_stop
        is_repeated, is_best = progress.evaluated_step >= progress.step, False
        if not is_repeated:
            progress.evaluated_step = progress.step
            self.rates.observe(evaluation.values)
            if early_stop is not None:
                is_best = early_stop.update(progress.step, evaluation.values.get(early_stop.metric, math.nan))
        if not (is_repeated and is_recalled):
            self.emit(Evaluated(progress.step, progress.epoch, evaluation, is_recalled, is_repeated))
        if is_best and early_stop is not None and early_stop.restore_best:
            self.save()
        self._decide()  # saves now, so that the record names the checkpoint; whether to stop is asked after the step

    def _log(self, closing: bool = True) -> None:
        """Report the numbers since the last time; a window that stays open goes on when the run does."""
        progress, (since, step, rows) = self.progress, self._counted_from
        now = time.perf_counter()
        scaling = self.failures.scaling
        numbers = {
            "loss": progress.window_loss / progress.window_steps,
            "rows_per_second": round((progress.rows - rows) / (now - since)),
            "steps_per_second": round((progress.step - step) / (now - since), 3),
            "waiting_share": round(self.pipeline.stopwatch.waiting_share(), 4),
            **self.measured(),
            **({"loss_scale": scaling.scale} if scaling is not None else {}),
        }
        rates, metrics, remarks = self.rates.values(progress), self.metrics.compute(), self.metrics.remarks()
        self._counted_from, self._logged_step = (now, progress.step, progress.rows), progress.step
        if closing:
            progress.window_steps, progress.window_loss = 0, 0.0
        self.emit(Logged(progress, numbers, rates, metrics, remarks))
        self._decide()  # saves now, before an evaluation; whether to stop is asked after the step

    def _catch_up(self) -> None:
        """Do what a kill may have come before: reporting the checkpoint one continues from, and evaluating it."""
        progress, every = self.progress, self.timetable.evaluate_every
        self._recall_evaluation(progress.step)
        records = [record for record in self.folder.log.read() if record.get("step") == progress.step]
        self._ended_before = any(record.get("event") == "end" for record in records)
        if any("event" not in record for record in records):
            self._logged_step = progress.step
        if self._ended_before:  # who continues a run that came to its end wants more of it
            self.control.stop_reason = None
        if progress.evaluated_step == progress.step:
            self.evaluate()
        known = Evaluation.recalled(self.folder.evaluations.read(), progress.evaluated_step)
        self.emit(Saved(progress.step, {} if known is None else known.values))
        if self.evaluation is not None:
            self._learn_from(self.evaluation, is_recalled=True)
        at_epoch_end = progress.epoch_steps == 0 and every.due(progress, after_epoch=True)
        if every.due(progress) or at_epoch_end:
            self.evaluate()

    def _restore_best(self, early_stop: EarlyStop, best_step: int) -> None:
        """End with the parameters of the best evaluation, and mark its checkpoint as the one to use."""
        if best_step != self.progress.step:
            self.checkpoints.restore_parameters(best_step)
            self._recall_evaluation(best_step)
            self.restored_step = best_step
        replace_text(self.folder.path / MARK, early_stop.mark())

    def _recall_evaluation(self, step: int) -> None:
        """Take up the evaluation of this step that was made before, where there is one."""
        evaluation = Evaluation.recalled(self.folder.evaluations.read(), step)
        if evaluation is not None:
            self.evaluation, self.evaluated_step = evaluation, step

    def emit(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)


def no_batch(key: str) -> DataError:
    """The error for data that are there but give nothing."""
    return DataError(
        f"{key}: the files give no batch: they have no rows, or fewer than data_config.batch_size with drop_remainder"
    )
