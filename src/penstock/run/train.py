"""The command `train`, as a function."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.observe.data_profile import profile_data
from penstock.observe.memory_use import StageUse, measured_use
from penstock.observe.report.writing import try_to_write_report
from penstock.run.best import best_step
from penstock.run.hooks import TrainingHooks
from penstock.run.model_dir import ModelDir
from penstock.run.plan import plan_training, with_joined_batches
from penstock.run.requirements import require_for_training, train_section
from penstock.run.run_config import RunConfig
from penstock.run.saving import Saver, saved_shuffle_rows
from penstock.run.session import computing, exceeds_limit, limit_exceeded
from penstock.run.training_parts import Training, build_training
from penstock.runtime.interrupts import StopRequest, stop_on_signal
from penstock.runtime.memory import MemoryMonitor, MemoryReport
from penstock.runtime.world import World
from penstock.training.callbacks import Callbacks
from penstock.training.failures import StepInMemory
from penstock.training.train import train as train_loop


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a training run did and where it left it."""

    model_dir: Path
    checkpoint: Path
    steps: int
    epochs: int
    rows: int
    seconds: float
    metrics: Mapping[str, float]
    losses: Mapping[str, float]
    evaluated_step: int | None
    """The step of which metrics and losses speak; None where nothing was evaluated."""

    memory: MemoryReport
    stages: Sequence[StageUse]
    """What each stage was to hold, and what it held."""

    num_bad_rows: int = 0
    """Rows of the training data that cannot be used and were left out."""

    bad_rows: Path | None = None
    """Where they are, with the reasons."""

    shuffle: Mapping[str, float] | None = None
    """How well the rows were mixed (batching.quality); None without shuffling."""

    exit_code: int = 0
    """Not 0 when a signal ended the run before its end; it is saved all the same."""

    trained_rows: int = 0
    """Rows of this call alone; `rows` counts those before a resume too."""

    best_step: int | None = None
    """The saved step with the best value of export_config.best_exporter_metric."""

    skipped_batches: int = 0
    """Batches that were passed over because their loss was not finite; they are no steps."""

    overflowed_batches: int = 0
    """Batches that were passed over because a gradient was too large for FP16; they are no steps either."""

    stopped_because: str | None = None
    """Why the run ended before its time, by early stopping or by a callback."""

    restored_step: int | None = None
    """The best step, where a run with early stopping went back to it; `checkpoint` is the one of this step."""

    advice: str | None = None
    """What the step advisor would change, where the model waited for its data."""

    remarks: Mapping[str, str] = field(default_factory=dict)
    """By metric: why it is undefined, how many rows it is without, how many groups it is over."""

    report: Path | None = None
    """The page that explains the run; None where it could not be written."""


def train(
    run: RunConfig,
    resume: bool = False,
    *,
    callbacks: Sequence[Any] = (),
    new_data: bool = False,
    restore_optimizer: bool = True,
    plain: bool = True,
) -> TrainResult:
    """Train a run and evaluate it on the way; `resume` goes on from the newest whole checkpoint.

    With `new_data` the run goes on too, but at the first row of the data it is now given. `callbacks` are told what
    happens and may ask for something (`penstock.training.callbacks`).
    """
    started_at = time.perf_counter()
    require_for_training(run)
    run = with_joined_batches(run)
    folder = ModelDir.of(run.model_dir)
    folder.require_writable()
    resume = resume or new_data
    if not resume:
        folder.refuse_if_trained()
    with ExitStack() as stack:
        stack.enter_context(folder.lock())
        # Until everything is closed: a Ctrl-C that is no request comes before the first step.
        stop = stack.enter_context(stop_on_signal())
        monitor = stack.enter_context(computing(run))
        with monitor.stage("build"):
            shuffled = saved_shuffle_rows(folder) if resume and not new_data else None
            plan = plan_training(run, monitor, shuffled, folder.path)
            # A run that goes on in the same data has been looked at.
            profile = profile_data(run, plan, monitor.sample()) if shuffled is None else None
            before_bytes = monitor.sample()
            training = stack.enter_context(build_training(run, World(), plan))
            training.model_bytes = max(0, monitor.sample() - before_bytes)
            training.data_profile = profile
            listeners = Callbacks(callbacks, training.rates)
            training.resumables["callbacks"] = listeners
            saver = Saver(folder, training, run)
            if resume:
                saver.restore(restore_optimizer, new_data)
            if saver.saved_step is None:
                chosen = train_section(run)
                saver.fine_tune(chosen.fine_tune_checkpoint, chosen.fine_tune_ckpt_param_map)
            hooks = TrainingHooks(
                run, training, saver, monitor, stop, listeners, plain=plain, started_at=started_at
            )
        return run_training(run, training, saver, monitor, hooks, stop)


def run_training(
    run: RunConfig,
    training: Training,
    saver: Saver,
    monitor: MemoryMonitor,
    hooks: TrainingHooks,
    stop: StopRequest,
) -> TrainResult:
    """Run the loop over built parts, then save and evaluate what is not yet."""
    started_at, rows_before = time.perf_counter(), training.progress.rows
    aside = saver.folder.path / "out_of_memory"
    step = StepInMemory(training.step, run, aside, monitor, training.sharded.device)
    with hooks, monitor.stage("train"):
        hooks.catch_up()
        if hooks.stop_reason is None:
            train_loop(step, training.batches, training.progress, training.timetable, hooks)
        hooks.finish()
    if exceeds_limit(run, monitor):
        raise limit_exceeded(
            monitor.report, f"step {training.progress.step} is saved, continue with --continue_train"
        )
    progress, quarantine = training.progress, training.source.quarantine
    return TrainResult(
        model_dir=saver.folder.path,
        checkpoint=saver.folder.checkpoints / f"step-{hooks.restored_step or progress.step}",
        steps=progress.step,
        epochs=progress.epoch,
        rows=progress.rows,
        seconds=time.perf_counter() - started_at,
        metrics=hooks.evaluation.metrics if hooks.evaluation else {},
        losses=hooks.evaluation.losses if hooks.evaluation else {},
        remarks=hooks.evaluation.remarks if hooks.evaluation else {},
        evaluated_step=hooks.evaluated_step,
        memory=monitor.report,
        stages=measured_use(training.budget, monitor.report, training.model_bytes),
        num_bad_rows=0 if quarantine is None else len(quarantine),
        bad_rows=None if quarantine is None else quarantine.path,
        shuffle=None if training.quality is None else training.quality.score(),
        exit_code=stop.exit_code if stop else 0,
        trained_rows=progress.rows - rows_before,
        best_step=best_step(saver.folder.evaluations.read(), run.export_config),
        skipped_batches=progress.skipped_batches,
        overflowed_batches=progress.overflowed_batches,
        stopped_because=hooks.stop_reason,
        restored_step=hooks.restored_step,
        advice=None if hooks.advice is None else str(hooks.advice),
        report=try_to_write_report(saver.folder.path),
    )
