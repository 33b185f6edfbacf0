"""Who listens to a training run: the bar, the log, checkpoints, evaluations and callbacks."""

import json
import math
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from penstock.config.write import dump_yaml
from penstock.observe.advice import Advice
from penstock.observe.advice import as_record as advice_record
from penstock.observe.evaluation_record import evaluation_record, recalled, told
from penstock.observe.log import StepLog, told_end
from penstock.observe.memory_use import as_record, measured_use
from penstock.observe.numbers import numbers
from penstock.observe.observers import Observers
from penstock.run.best import MARK, mark
from penstock.run.evaluate import Evaluator
from penstock.run.requirements import train_section
from penstock.run.run_config import RunConfig
from penstock.run.saving import Saver
from penstock.run.session import exceeds_limit
from penstock.run.training_parts import Training
from penstock.runtime.interrupts import StopRequest
from penstock.runtime.memory import MemoryMonitor
from penstock.runtime.progress import ProgressLogger
from penstock.tensors.batch import Batch
from penstock.training.callbacks import Callbacks
from penstock.training.evaluate import Evaluation
from penstock.training.failures import NonfiniteBatches, Overflows
from penstock.training.progress import TrainingProgress
from penstock.training.step import StepOutcome
from penstock.training.train import Stopwatch


class TrainingHooks:
    """Shows, logs, saves and evaluates. Nothing is written before the first batch was tried."""

    def __init__(
        self,
        run: RunConfig,
        training: Training,
        saver: Saver,
        monitor: MemoryMonitor,
        stop: StopRequest,
        callbacks: Callbacks,
        *,
        plain: bool,
        started_at: float,
    ) -> None:
        """`started_at` is when the command began, by `time.perf_counter`."""
        self._run, self._training, self._saver = run, training, saver
        self._monitor, self._stop, self._callbacks = monitor, stop, callbacks
        self._started_at = started_at
        self._evaluator = checked_evaluator(run, training, monitor)
        train, progress = train_section(run), training.progress
        total = training.total_steps
        self._bar = ProgressLogger(
            "train",
            "step",
            total=None if total is None else progress.steps_before + total,
            done=progress.step,
            plain=plain,
        )
        self._log = StepLog(
            saver.folder.log,
            train.log_step_count_steps,
            training.rates.values,
            monitor,
            progress.rows,
            progress.step,
            training.scaling,
        )
        self._overflows = Overflows(training.scaling, self._log)
        self._observers = Observers(run, training, saver.folder, self._log)
        self.advice: Advice | None = None
        """What the step advisor said at the end."""
        self._nonfinite = NonfiniteBatches(saver.folder.path / "nonfinite", train)
        self._started_afresh = saver.saved_step is None
        self.evaluation: Evaluation | None = None
        self.evaluated_step: int | None = None
        """The step of which `evaluation` speaks."""
        self.restored_step: int | None = None
        """The step to whose parameters the run went back at its end; None where the last one was the best."""
        if not self._started_afresh:
            self._recall_evaluation(progress.step)
        self._former_end = None if self._started_afresh else told_end(saver.folder.log.read(), progress.step)
        self._header_written = False
        self._stopwatch = Stopwatch()

    def __enter__(self) -> Self:
        self._observers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._observers.__exit__(kind, error, trace)
        self._bar.__exit__(kind, error, trace)

    def catch_up(self) -> None:
        """Do what a kill may have come before: telling of the checkpoint one continues from, and evaluating it."""
        if self._started_afresh:
            return
        progress, every = self._training.progress, self._training.timetable.evaluate_every
        if self._former_end is not None:
            self._callbacks.control.forget_stop()
        self._tell_of_saved(progress)
        if self.evaluation is not None:
            self._hear(progress, self.evaluation)
        at_epoch_end = progress.epoch_steps == 0 and every.due_after_epoch(progress)
        if every.due_after_step(progress) or at_epoch_end:
            self.on_evaluate_due(progress)

    def on_step(
        self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome, stopwatch: Stopwatch
    ) -> None:
        """Show the step, and log it when it is its turn."""
        self._write_header(progress.step - 1)
        metrics = self._training.train_metrics
        metrics.update(outcome.predictions, batch)
        self._bar.advance(
            fields=lambda: self._log.fields(progress, outcome.loss, stopwatch, metrics.compute())
        )
        self._observers.after_step(progress.step, stopwatch)
        self._stopwatch = stopwatch
        self._tell_of_line(progress, self._log.record(progress, stopwatch, metrics.compute, metrics.remarks))

    def on_nonfinite(self, progress: TrainingProgress, batch: Batch, outcome: StepOutcome) -> None:
        """Stop with the rows written aside, or tell that they are passed over."""
        self._saver.folder.path.mkdir(parents=True, exist_ok=True)
        self._nonfinite.meet(progress, batch, outcome)
        self._write_header(progress.step)
        skipped = {"skipped_batches": progress.skipped_batches + 1, "num_rows": batch.num_rows}
        self._log.tell("skipped", progress.step + 1, **skipped)

    def on_overflow(self, progress: TrainingProgress, batch: Batch) -> None:
        """Write down that a batch was passed over, and the next scale."""
        self._write_header(progress.step)
        self._overflows.meet(progress, batch)

    def on_save_due(self, progress: TrainingProgress) -> None:
        """Write a checkpoint, unless this step has one: the end of an epoch may be the turn of steps too."""
        if self._saver.saved_step == progress.step:
            return
        with self._monitor.stage("save"):
            self._saver.save(progress)
        self._callbacks.tell("on_save", progress.step, told(self.evaluation))

    def on_evaluate_due(self, progress: TrainingProgress) -> None:
        """Evaluate the model as it is now, keep the result, and let everyone learn from it."""
        if self._evaluator is None or self.evaluated_step == progress.step:
            return
        started_at = time.perf_counter()
        evaluation = self._evaluator.evaluate(self.interrupted)
        if evaluation is None:
            return
        self.evaluation, self.evaluated_step = evaluation, progress.step
        found = numbers(told(evaluation), evaluation.remarks)
        self._bar.note(f"eval: step {progress.step:,}, epoch {progress.epoch}: {found}")
        self._observers.after_evaluation(progress.step, evaluation)
        self._hear(progress, evaluation)
        seconds = time.perf_counter() - started_at
        saved = self._saver.saved_step == progress.step
        self._saver.folder.evaluations.write(evaluation_record(progress, evaluation, seconds, saved))

    def interrupted(self) -> bool:
        """After a signal, or past the memory limit where that is to stop the run."""
        return bool(self._stop) or exceeds_limit(self._run, self._monitor)

    @property
    def stop_reason(self) -> str | None:
        """Why the run ends before its time, by its own choice."""
        early_stop = self._training.early_stop
        if early_stop is not None and early_stop.due:
            return early_stop.reason()
        return self._callbacks.control.stop_reason

    def stop_requested(self) -> bool:
        """When interrupted, when evaluations get no better, or when a callback asked for it."""
        return self.interrupted() or self.stop_reason is not None

    def finish(self) -> None:
        """Save the last step and evaluate it, where that is not done; an interrupted run is saved only."""
        progress = self._training.progress
        if not self.interrupted():
            metrics = self._training.train_metrics
            logged = self._log.record_last(progress, self._stopwatch, metrics.compute, metrics.remarks)
            self._tell_of_line(progress, logged)
        self.on_save_due(progress)
        if not self.interrupted():
            self.on_evaluate_due(progress)
            self._restore_best()
        self._callbacks.tell("on_end", progress.step, told(self.evaluation))
        if self._header_written or self._former_end is None:
            self._tell_end(progress)

    def _hear(self, progress: TrainingProgress, evaluation: Evaluation) -> None:
        """Everyone who learns from evaluations hears each once, also when a run was killed in between.

        The best checkpoint must exist to go back to, whether or not this step's turn to be saved has come.
        """
        if progress.evaluated_step >= progress.step:
            return
        progress.evaluated_step = progress.step
        values, early_stop = told(evaluation), self._training.early_stop
        self._training.rates.observe(values)
        best = early_stop is not None and early_stop.update(
            progress.step, values.get(early_stop.metric, math.nan)
        )
        self._callbacks.tell("on_eval", progress.step, values)
        if best and early_stop is not None and early_stop.restore_best:
            self.on_save_due(progress)
        self._save_if_asked(progress)

    def _restore_best(self) -> None:
        """End with the parameters of the best evaluation, and mark its checkpoint as the one to use."""
        early_stop = self._training.early_stop
        if early_stop is None or not early_stop.restore_best or early_stop.best_step is None:
            return
        step, folder = early_stop.best_step, self._saver.folder
        if step != self._training.progress.step:
            self._saver.restore_parameters(step)
            self._recall_evaluation(step)
            self.restored_step = step
        folder.write_text(folder.path / MARK, mark(early_stop))

    def _tell_of_saved(self, progress: TrainingProgress) -> None:
        """Tell of the checkpoint that a run continues from, and of what was evaluated last when it was written."""
        if progress.evaluated_step == progress.step:
            self.on_evaluate_due(progress)
        evaluation = recalled(self._saver.folder.evaluations.read(), progress.evaluated_step)
        self._callbacks.tell("on_save", progress.step, told(evaluation))

    def _tell_of_line(self, progress: TrainingProgress, logged: Mapping[str, float] | None) -> None:
        """Tell of a line of the log, where one was written."""
        if logged is not None:
            self._observers.after_log(progress.step, logged)
            self._callbacks.tell("on_log", progress.step, logged)
            self._save_if_asked(progress)

    def _save_if_asked(self, progress: TrainingProgress) -> None:
        if self._callbacks.take_save_request():
            self.on_save_due(progress)

    def _recall_evaluation(self, step: int) -> None:
        """Take up the evaluation of this step that was made before, where there is one."""
        evaluation = recalled(self._saver.folder.evaluations.read(), step)
        if evaluation is not None:
            self.evaluation, self.evaluated_step = evaluation, step

    def _tell_end(self, progress: TrainingProgress) -> None:
        report = self._monitor.report
        quality, quarantine = self._training.quality, self._training.source.quarantine
        self.advice = self._observers.advice(report)
        self._log.tell(
            "end",
            progress.step,
            rows=progress.rows,
            epoch=progress.epoch,
            skipped_batches=progress.skipped_batches,
            overflowed_batches=progress.overflowed_batches,
            stopped_because="a signal; --continue_train goes on" if self._stop else self.stop_reason,
            restored_step=self.restored_step,
            shuffle=None if quality is None else quality.score(),
            left_out_rows=None if quarantine is None else len(quarantine),
            advice=advice_record(self.advice),
            memory={
                "peak_bytes": report.peak_bytes,
                "peak_stage": report.peak_stage,
                "by_stage": report.stage_peaks,
                **as_record(measured_use(self._training.budget, report, self._training.model_bytes)),
            },
        )

    def _write_header(self, steps_before: int) -> None:
        """What the run is, on disk: its final config, versions, data, and the plan of its memory."""
        if self._header_written:
            return
        self._header_written = True
        folder = self._saver.folder
        folder.path.mkdir(parents=True, exist_ok=True)
        if self._started_afresh:
            folder.forget_records()
        (folder.path / MARK).unlink(missing_ok=True)
        folder.write_text(folder.run_file, dump_yaml(self._run))
        folder.write_version(self._training.source.fingerprint())
        if self._training.data_profile is not None:
            folder.write_text(
                folder.data_profile, json.dumps(self._training.data_profile, indent=1, default=str) + "\n"
            )
        shares = {share.name: share.limit_bytes for share in self._training.budget.shares.values()}
        self._log.tell(
            "start",
            steps_before,
            seconds_to_first_step=round(time.perf_counter() - self._started_at, 3),
            limit_bytes=self._training.budget.limit_bytes,
            planned_bytes=shares,
            shuffle_rows=self._training.num_shuffle_rows,
        )


def checked_evaluator(run: RunConfig, training: Training, monitor: MemoryMonitor) -> Evaluator | None:
    """The evaluator of a run that evaluates; what is wrong with its data shows now, not after an epoch."""
    if training.evaluation_source is None:
        return None
    evaluator = Evaluator(run, training.evaluation_source, training.sharded, training.budget, monitor)
    evaluator.check()
    return evaluator
