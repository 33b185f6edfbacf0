"""The command `train`, as a function."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock.checkpoint import CheckpointStore
from penstock.config.write import dump_yaml
from penstock.observe.advice import Advice, DataPathFacts, advise, advise_on_quality
from penstock.observe.data_profile import DataLook
from penstock.observe.listeners import MachineUse, Profiling, RunLog, TensorBoard
from penstock.observe.report.page import try_to_write_report
from penstock.observe.summary import StageUse, largest, measured_use
from penstock.readers.scan import dataset_type_of
from penstock.run.data import DataSource
from penstock.run.evaluate import training_evaluator
from penstock.run.feature_meaning import (
    COLUMN_KINDS_DOCUMENT,
    FEATURES_DOCUMENT,
    feature_meaning,
    trained_kinds,
)
from penstock.run.remarks import remarks
from penstock.run.requirements import require_for_training, train_section
from penstock.run.restore import (
    best_metric,
    checkpoint_to_continue,
    continue_run,
    fine_tune,
)
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.run.training import (
    Training,
    TrainingPlan,
    build_training,
    plan_training,
    profile_training_data,
    with_joined_batches,
)
from penstock.run.unknown_values import kinds_to_save, sample_remarks
from penstock.runtime.memory import MemoryReport
from penstock.runtime.world import Resumable, StopRequest, available_cores, stop_on_signal
from penstock.tensors.loader import BatchLoader
from penstock.training.best import best_step
from penstock.training.callbacks import Callbacks, Control
from penstock.training.checkpoints import RunCheckpoints
from penstock.training.events import Event, Listener, Started
from penstock.training.failures import Failures
from penstock.training.model_dir import ModelDir
from penstock.training.step import Pipeline
from penstock.training.trainer import Trainer

logger = logging.getLogger(__name__)

Watcher = RunLog | TensorBoard | Profiling
"""Listeners that are open while a trainer runs."""


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
    """How well the rows were mixed (data.shuffle); None without shuffling."""
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
    quality_advice: str | None = None
    """What got worse by training on, and the cure."""


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

    With `new_data` the run goes on too, but at the first row of the data it is now given. `callbacks` are called with
    what happens and may ask for something (`penstock.training.callbacks`).
    """
    command_began_at = time.perf_counter()
    require_for_training(run)
    run, resume = with_joined_batches(run), resume or new_data
    config, folder = train_section(run), ModelDir(Path(run.model_dir))
    with ExitStack() as stack:
        stack.enter_context(folder.lock(resume))
        # Until everything is closed: a Ctrl-C that is no request comes before the first step.
        stop = stack.enter_context(stop_on_signal())
        session = stack.enter_context(computing(run))
        monitor = session.monitor
        with monitor.stage("build"):
            num_kept = config.keep_checkpoint_max
            store = CheckpointStore(folder.checkpoints, num_kept, session.world, session.collectives)
            checkpoint = checkpoint_to_continue(run, store, new_data) if resume else None
            saved = None if checkpoint is None or new_data else checkpoint.documents["shuffle"]["num_rows"]
            plan = plan_training(run, session, saved_shuffle_rows=saved, run_folder=folder.path)
            # A run that goes on in the same data has been looked at.
            look = profile_training_data(run, plan, monitor.sample()) if saved is None else None
            if look is not None:
                look.record["remarks"] = [
                    *remarks(run, plan, look),
                    *sample_remarks(look.record, training=True),
                ]
            before = {} if checkpoint is None else trained_kinds(checkpoint)
            kinds = kinds_to_save(None if look is None else look.record, before)
            plan = plan.expecting(before, kinds)
            before_bytes = monitor.sample()
            training = stack.enter_context(build_training(run, session, plan))
            model_bytes = max(0, monitor.sample() - before_bytes)
            control = Control(training.step.rates)
            listener = Callbacks(callbacks, control) if callbacks else None
            checkpoints = build_checkpoints(run, training, store, folder, listener, kinds)
            if checkpoint is not None:
                options = {"restore_optimizer": restore_optimizer, "new_data": new_data}
                continue_run(run, training, checkpoint, checkpoints, folder, **options)
            elif config.fine_tune_checkpoint:
                fine_tune(run, training, config.fine_tune_checkpoint, config.fine_tune_ckpt_param_map)
            header = partial(write_header, run, plan, folder, look, checkpoint is None, command_began_at)
            trainer, watchers = build_trainer(
                run, training, session, checkpoints, header, control, listener, stop=stop, plain=plain
            )
        return run_to_end(run, training, session, trainer, watchers, stop=stop, model_bytes=model_bytes)


def run_to_end(
    run: RunConfig,
    training: Training,
    session: Session,
    trainer: Trainer,
    watchers: Sequence[Watcher],
    *,
    stop: StopRequest,
    model_bytes: int,
) -> TrainResult:
    """Train, write the last line of the log and the report, and then raise if the run stopped at its memory limit."""
    plan, progress, monitor = training.plan, training.progress, session.monitor
    began_at, steps_before, rows_before = time.perf_counter(), progress.step, progress.rows
    with ExitStack() as watching, monitor.stage("train"):
        for watcher in watchers:
            watching.enter_context(watcher)
        ended, advice, quality = trainer.run(), None, None
        stages = measured_use(plan.budget, monitor.report, model_bytes)
        shuffle = None if plan.quality is None else plan.quality.score()
        if not ended.is_repeated:
            ended_at = trainer.evaluated_step or 0
            quality = advise_on_quality(
                [
                    record
                    for record in trainer.folder.evaluations.read()
                    if progress.steps_before < record["step"] <= ended_at
                ]
            )
            advice = write_end(
                run,
                training,
                trainer,
                quality=quality,
                stopped_because="a signal; --continue_train goes on" if stop else ended.stopped_because,
                num_steps=progress.step - steps_before,
                stages=stages,
                shuffle=shuffle,
            )
    result = train_result(
        trainer,
        plan.source,
        seconds=time.perf_counter() - began_at,
        best_step=best_step(trainer.folder.evaluations.read(), trainer.checkpoints.best_metric),
        trained_rows=progress.rows - rows_before,
        stages=stages,
        shuffle=shuffle,
        exit_code=stop.exit_code if stop else 0,
        stopped_because=ended.stopped_because,
        advice=None if advice is None else str(advice),
        quality_advice=None if quality is None else str(quality),
    )
    report = try_to_write_report(trainer.folder.path)
    if monitor.must_stop():
        raise session.limit_exceeded(f"step {progress.step} is saved, continue with --continue_train")
    return replace(result, report=report)


def train_result(trainer: Trainer, source: DataSource, **measured: Any) -> TrainResult:
    """The result of a run that has ended; `measured` are the fields that the trainer does not know."""
    progress, evaluation, folder = trainer.progress, trainer.evaluation, trainer.folder
    quarantine = source.quarantine
    return TrainResult(
        model_dir=folder.path,
        checkpoint=folder.checkpoints / f"step-{trainer.restored_step or progress.step}",
        steps=progress.step,
        epochs=progress.epoch,
        rows=progress.rows,
        metrics=evaluation.metrics if evaluation else {},
        losses=evaluation.losses if evaluation else {},
        remarks=evaluation.remarks if evaluation else {},
        evaluated_step=trainer.evaluated_step,
        memory=trainer.monitor.report,
        num_bad_rows=0 if quarantine is None else len(quarantine),
        bad_rows=None if quarantine is None else quarantine.path,
        skipped_batches=progress.skipped_batches,
        overflowed_batches=progress.overflowed_batches,
        restored_step=trainer.restored_step,
        **measured,
    )


def build_checkpoints(
    run: RunConfig,
    training: Training,
    store: CheckpointStore,
    folder: ModelDir,
    callbacks: Callbacks | None,
    kinds: Mapping[str, str],
) -> RunCheckpoints:
    """What saves a run; of old checkpoints the best ones stay. `kinds` are those of the columns it is trained on."""
    parts: dict[str, Resumable | None] = {
        "rates": training.step.rates,
        "train_metrics": training.plan.train_metrics,
        "early_stopping": training.early_stop,
        "loss_scaling": training.step.scaling,
        "callbacks": callbacks,
    }
    documents = {
        "shuffle": {"num_rows": training.plan.num_shuffle_rows},
        FEATURES_DOCUMENT: feature_meaning(run),
        COLUMN_KINDS_DOCUMENT: dict(kinds),
    }
    metric = best_metric(run.export_config)
    return RunCheckpoints(
        store,
        training.sharded.module,
        training.dense_optimizer,
        training.sharded.averages,
        {name: part for name, part in parts.items() if part is not None},
        documents,
        folder,
        metric,
        training.early_stop,
    )


def build_trainer(
    run: RunConfig,
    training: Training,
    session: Session,
    checkpoints: RunCheckpoints,
    header: Listener,
    control: Control,
    callbacks: Callbacks | None = None,
    *,
    stop: StopRequest,
    plain: bool = True,
) -> tuple[Trainer, list[Watcher]]:
    """A trainer, and those of its listeners that are entered before it runs."""
    monitor, train, progress = session.monitor, train_section(run), training.progress
    rates, metrics, module = training.step.rates, training.plan.train_metrics, training.sharded.module
    evaluator = training_evaluator(run, training, session)
    machine, folder, total = MachineUse(), checkpoints.folder, training.total_steps
    watchers: list[Watcher] = []
    if train.use_tensorboard:
        next_step = progress.step + 1 if progress.step else 0
        board = TensorBoard(folder.path, train, lambda: dict(module.named_parameters()), next_step)
        watchers.append(board)
    log = RunLog(
        folder.log,
        progress,
        rates,
        metrics,
        monitor,
        total_steps=total,
        num_epochs=training.timetable.end.epochs,
        plain=plain,
    )
    if train.is_profiling:

        def on_trace(operators: Sequence[dict[str, Any]], path: Path) -> None:
            record = {"event": "profile", "step": progress.step, "operators": operators, "trace": path.name}
            folder.log.write(record)

        watchers.append(Profiling(folder.path, on_trace))
    watchers.insert(0, log)
    listeners: list[Listener] = [header, *watchers]
    if callbacks is not None:
        listeners.append(callbacks)
    batch_cost_size = run.data_config.batch_cost_size
    trainer = Trainer(
        pipeline=Pipeline(training.step, progress),
        batches=training.batches,
        progress=progress,
        timetable=training.timetable,
        rates=rates,
        metrics=metrics,
        checkpoints=checkpoints,
        folder=folder,
        failures=Failures(
            folder.path, train, batch_cost_size, monitor, training.sharded.device, training.step.scaling
        ),
        monitor=monitor,
        control=control,
        listeners=listeners,
        evaluate_model=evaluator,
        early_stop=training.early_stop,
        measured=lambda: {"memory_bytes": monitor.last_bytes, **machine.since_last()},
        interrupted=lambda: monitor.must_stop() or bool(stop),
    )
    return trainer, watchers


def write_header(
    run: RunConfig,
    plan: TrainingPlan,
    folder: ModelDir,
    look: DataLook | None,
    is_new: bool,
    command_began_at: float,
    event: Event,
) -> None:
    """Once the run has started, write what it is: its final config, versions, data, and the plan of its memory.

    Remarks on the data come here, so that a run that cannot start ends in its one line.
    """
    if not isinstance(event, Started):
        return
    data = {file.path: file.size_bytes for file in plan.source.scanned.files}
    folder.begin(dump_yaml(run), data, None if look is None else look.record, is_new=is_new)
    for remark in () if look is None else look.record["remarks"]:
        logger.warning("%s", remark)
    folder.log.write(
        {
            "event": "start",
            "step": event.step,
            "seconds_to_first_step": round(time.perf_counter() - command_began_at, 3),
            "limit_bytes": plan.budget.limit_bytes,
            "planned_bytes": {share.name: share.limit_bytes for share in plan.budget.shares.values()},
            "shuffle_rows": plan.num_shuffle_rows,
        }
    )


def write_end(
    run: RunConfig,
    training: Training,
    trainer: Trainer,
    *,
    quality: Advice | None,
    stopped_because: str | None,
    num_steps: int,
    stages: Sequence[StageUse],
    shuffle: Mapping[str, float] | None,
) -> Advice | None:
    """Write what the run did and took, and what the step advisor would change after these steps; gives the advice."""
    source, shares = training.plan.source, training.plan.budget.shares
    report, stopwatch, loader = trainer.monitor.report, trainer.pipeline.stopwatch, training.batches.source
    assert isinstance(loader, BatchLoader)
    advice = advise(
        DataPathFacts(
            num_steps=num_steps,
            waiting_share=stopwatch.waiting_share(),
            reading_seconds=loader.reading_seconds,
            parsing_seconds=loader.parsing_seconds,
            computing_seconds=stopwatch.working,
            batch_rows=source.max_batch_rows,
            batch_bytes=source.max_batch_rows * source.scanned.row_bytes,
            num_workers=training.plan.num_workers,
            num_cores=available_cores(),
            free_bytes=report.limit_bytes - report.peak_bytes,
            share_bytes={name: share.limit_bytes for name, share in shares.items()},
            dataset_type=dataset_type_of(run.data_config, source.scanned.files),
        )
    )
    progress, most = training.progress, largest(stages)
    trainer.folder.log.write(
        {
            "event": "end",
            "step": progress.step,
            "rows": progress.rows,
            "epoch": progress.epoch,
            "skipped_batches": progress.skipped_batches,
            "overflowed_batches": progress.overflowed_batches,
            "stopped_because": stopped_because,
            "restored_step": trainer.restored_step,
            "shuffle": shuffle,
            "left_out_rows": None if source.quarantine is None else len(source.quarantine),
            "advice": None if advice is None else advice.record(),
            "quality_advice": None if quality is None else quality.record(),
            "memory": {
                "peak_bytes": report.peak_bytes,
                "peak_stage": report.peak_stage,
                "by_stage": report.stage_peaks,
                "stages": {
                    stage.name: {
                        "planned_bytes": stage.planned_bytes,
                        "measured_bytes": stage.measured_bytes,
                        "setting": stage.setting,
                    }
                    for stage in stages
                },
                "largest_stage": None if most is None else most.name,
                "lower": None if most is None else most.setting,
            },
        }
    )
    return advice
