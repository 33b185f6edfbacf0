"""Who listens to a training run: the bar, the log, checkpoints and evaluations."""

import math
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from penstock.config.write import dump_yaml
from penstock.loops.evaluate import Evaluation
from penstock.loops.progress import TrainingProgress
from penstock.loops.train import Stopwatch
from penstock.pipeline.evaluation import Evaluator
from penstock.pipeline.memory_use import as_record, measured_use
from penstock.pipeline.numbers import numbers
from penstock.pipeline.requirements import train_section
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.saving import Saver
from penstock.pipeline.session import exceeds_limit
from penstock.pipeline.step_log import StepLog
from penstock.pipeline.training_parts import Training
from penstock.runtime.interrupts import StopRequest
from penstock.runtime.memory import MemoryMonitor
from penstock.runtime.progress import Progress, open_display


class TrainingHooks:
    """Shows, logs, saves and evaluates. Nothing is written before the first step is done."""

    def __init__(
        self,
        run: RunConfig,
        training: Training,
        saver: Saver,
        monitor: MemoryMonitor,
        stop: StopRequest,
        plain: bool,
    ) -> None:
        self.evaluation: Evaluation | None = None
        self._run, self._training, self._saver, self._monitor, self._stop = (
            run,
            training,
            saver,
            monitor,
            stop,
        )
        self._evaluator = checked_evaluator(run, training, monitor)
        train, progress = train_section(run), training.progress
        self._bar = Progress(open_display("train", "step", plain), total=training.total_steps, every=1)
        self._bar.done = progress.step
        self._log = StepLog(
            saver.folder.log, train.log_step_count_steps, training.rates.values, monitor, progress.rows
        )
        self._started_afresh = saver.saved_step is None
        self.evaluated_step = None if self._started_afresh else self._recall_evaluation(progress.step)
        self._header_written = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def catch_up(self) -> None:
        """Evaluate the checkpoint that a run continues from, where a kill came between its save and its evaluation."""
        progress, every = self._training.progress, self._training.timetable.evaluate_every
        at_epoch_end = progress.epoch_steps == 0 and every.due_after_epoch(progress)
        due = every.due_after_step(progress) or at_epoch_end
        if due and not self._started_afresh:
            self.on_evaluate_due(progress)

    def on_step(self, progress: TrainingProgress, loss: float, stopwatch: Stopwatch) -> None:
        """Show the step, and log it when it is its turn."""
        self._write_header(progress)
        self._bar.advance(fields=lambda: self._log.fields(progress, loss, stopwatch))
        self._log.record(progress, stopwatch)

    def on_save_due(self, progress: TrainingProgress) -> None:
        """Write a checkpoint, unless this step has one: the end of an epoch may be the turn of steps too."""
        if self._saver.saved_step == progress.step:
            return
        with self._monitor.stage("save"):
            self._saver.save(progress)

    def on_evaluate_due(self, progress: TrainingProgress) -> None:
        """Evaluate the model as it is now, and keep the result."""
        if self._evaluator is None or self.evaluated_step == progress.step:
            return
        started_at = time.perf_counter()
        evaluation = self._evaluator.evaluate(self.stop_requested)
        if evaluation is None:
            return
        self.evaluation, self.evaluated_step = evaluation, progress.step
        found = numbers({**self.evaluation.losses, **self.evaluation.metrics})
        self._bar.note(f"eval: step {progress.step:,}, epoch {progress.epoch}: {found}")
        self._saver.folder.evaluations.write(
            {
                "step": progress.step,
                "epoch": progress.epoch,
                "metrics": self.evaluation.metrics,
                "losses": self.evaluation.losses,
                "rows": self.evaluation.rows,
                "seconds": round(time.perf_counter() - started_at, 3),
                "checkpoint": f"step-{progress.step}" if self._saver.saved_step == progress.step else None,
            }
        )

    def stop_requested(self) -> bool:
        """After a signal, or past the memory limit where that is to stop the run."""
        return bool(self._stop) or exceeds_limit(self._run, self._monitor)

    def finish(self) -> None:
        """Save the last step and evaluate it, where that is not done; an interrupted run is saved only."""
        progress = self._training.progress
        self.on_save_due(progress)
        if not self.stop_requested():
            self.on_evaluate_due(progress)
        if self._header_written:
            self._tell_end(progress)

    def _recall_evaluation(self, step: int) -> int | None:
        """The evaluation of this step that an earlier process has made; gives the step, or None."""
        for record in self._saver.folder.evaluations.read():
            if record["step"] == step:
                self.evaluation = Evaluation(
                    known(record["metrics"]), known(record["losses"]), record["rows"]
                )
                return step
        return None

    def _tell_end(self, progress: TrainingProgress) -> None:
        report = self._monitor.report
        quality = self._training.quality
        self._log.tell(
            "end",
            progress.step,
            rows=progress.rows,
            epoch=progress.epoch,
            shuffle=None if quality is None else quality.score(),
            memory={
                "peak_bytes": report.peak_bytes,
                "peak_stage": report.peak_stage,
                "by_stage": report.stage_peaks,
                **as_record(measured_use(self._training.budget, report, self._training.model_bytes)),
            },
        )

    def _write_header(self, progress: TrainingProgress) -> None:
        """What the run is, on disk: its final config, versions, and the plan of its memory."""
        if self._header_written:
            return
        self._header_written = True
        folder = self._saver.folder
        folder.path.mkdir(parents=True, exist_ok=True)
        if self._started_afresh:
            folder.forget_records()
        folder.write_text(folder.run_file, dump_yaml(self._run))
        folder.write_version(self._training.source.fingerprint())
        shares = {share.name: share.limit_bytes for share in self._training.budget.shares.values()}
        self._log.tell(
            "start",
            progress.step - 1,
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


def known(values: Mapping[str, float | None]) -> dict[str, float]:
    """Numbers of a journal, with those that are undefined as NaN again."""
    return {name: math.nan if value is None else value for name, value in values.items()}
