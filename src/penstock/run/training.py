"""Everything a trainer takes, built from a run file."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torchrec.optim.keyed import KeyedOptimizer

from penstock.data.memory_plan import StageShares
from penstock.data.prefetch import Prefetch
from penstock.data.quality import ShuffleQuality
from penstock.distributed.sharding import dense_parameters
from penstock.metrics.windows import window_misfit
from penstock.models.model import Model
from penstock.optim.dense import combined, dense_optimizers
from penstock.optim.schedules import build_schedule
from penstock.readers.order import Shard
from penstock.run.build import ShardedModel, shard_model
from penstock.run.data import DataSource, batch_rows, training_batches
from penstock.run.metrics import TRAIN_METRICS, bound_metrics, group_columns, training_metrics
from penstock.run.plan import TrainingPlan
from penstock.run.requirements import model_section, train_section
from penstock.run.run_config import RunConfig
from penstock.run.session import Session
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.world import Resumable
from penstock.tensors.batch import Batch
from penstock.training.best import EarlyStop
from penstock.training.learning_rates import LearningRates
from penstock.training.precision import PRECISIONS, LossScaling, gradient_clipper
from penstock.training.progress import End, Every, Timetable, TrainingProgress
from penstock.training.sections import GradScaler, TrainConfig
from penstock.training.step import TrainStep
from penstock.training.task_metrics import TaskMetrics

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Training:
    """A run's objects, wired."""

    sharded: ShardedModel
    dense_optimizer: KeyedOptimizer
    step: TrainStep
    rates: LearningRates
    batches: Prefetch[Batch]
    source: DataSource
    evaluation_source: DataSource | None
    progress: TrainingProgress
    timetable: Timetable
    budget: MemoryBudget
    num_shuffle_rows: int
    shard: Shard
    total_steps: int | None
    """How many steps the whole run takes, where that is known before it is done."""
    quality: ShuffleQuality | None
    """How well the rows are mixed, where they are shuffled."""
    early_stop: EarlyStop | None
    scaling: LossScaling | None
    """How losses are scaled, in FP16."""
    train_metrics: TaskMetrics

    def resumables(self) -> dict[str, Resumable]:
        """What has a state beside model, optimizers and data, by the name of its document in a checkpoint."""
        parts: dict[str, Resumable | None] = {
            "rates": self.rates,
            "train_metrics": self.train_metrics,
            "early_stopping": self.early_stop,
            "loss_scaling": self.scaling,
        }
        return {name: part for name, part in parts.items() if part is not None}


@contextmanager
def build_training(run: RunConfig, session: Session, plan: TrainingPlan) -> Iterator[Training]:
    train, data = train_section(run), run.data_config
    source, budget, model = plan.source, plan.budget, plan.model
    shard, shares = Shard(session.world.rank, session.world.num_ranks), StageShares.of(budget)
    label = next(iter(data.label_fields), None)
    quality = ShuffleQuality(source.scanned.blocks, label) if plan.num_shuffle_rows else None
    with training_batches(
        data, source, shares, plan.num_shuffle_rows, shard, plan.num_workers, quality
    ) as batches:
        sharded = shard_model(model, train, session.world)
        parameters = dense_parameters(sharded.module)
        scheduled = dense_optimizers(train.dense_optimizer, parameters.items())
        dense_optimizer = combined(scheduled)
        if train.sparse_optimizer is not None:
            tables = {"sparse": (sharded.module.fused_optimizer, build_schedule(train.sparse_optimizer))}
            scheduled = {**tables, **scheduled}
        rates = LearningRates(scheduled)
        metrics, metrics_share = training_metrics(model, session.peers), budget.shares.get(TRAIN_METRICS)
        bound_metrics(metrics, metrics_share, batch_rows(data))
        warn_of_windows(train, model)
        warn_of_cuts(model, data.shuffle)
        scaling = None
        if train.mixed_precision == "FP16":
            section = train.grad_scaler or GradScaler()
            scaling = LossScaling(section, sharded.module, parameters.values(), sharded.device)
        step = TrainStep(
            sharded.module,
            dense_optimizer,
            rates,
            sharded.device,
            precision=PRECISIONS.get(train.mixed_precision or ""),
            scaling=scaling,
            clip=gradient_clipper(train.grad_clipping, parameters.values()),
            follow=sharded.averages.update if sharded.averages is not None else lambda: None,
        )
        yield Training(
            sharded=sharded,
            dense_optimizer=dense_optimizer,
            step=step,
            rates=rates,
            batches=batches,
            source=source,
            evaluation_source=plan.evaluation_source,
            progress=TrainingProgress(),
            timetable=timetable_of(train),
            budget=budget,
            num_shuffle_rows=plan.num_shuffle_rows,
            shard=shard,
            total_steps=total_steps(train, source.num_batches(data)),
            quality=quality,
            early_stop=EarlyStop.of(train.early_stopping, model_section(run).loss_names()),
            scaling=scaling,
            train_metrics=TaskMetrics(metrics, group_columns(run, training=True), share=metrics_share),
        )


def warn_of_windows(train: TrainConfig, model: Model) -> None:
    """Say when a log line would show a train metric in the middle of its window."""
    decay_steps = [config.decay_step for task in model.tasks for config in task.train_metrics]
    misfit = window_misfit(train.log_step_count_steps, decay_steps)
    if misfit is not None:
        logger.warning("train_config: %s", misfit)


def warn_of_cuts(model: Model, shuffled: bool) -> None:
    """Say when a metric compares rows of one batch only, and these are neighbours in the data."""
    if shuffled:
        return
    for task in model.tasks:
        for key in ("metrics", "train_metrics"):
            if any(config.xauc is not None and config.xauc.in_batch for config in getattr(task, key)):
                logger.warning(
                    "%s.%s: xauc with in_batch compares rows that lie side by side in the data, and "
                    "data_config.shuffle is off; shuffle them, or leave in_batch out",
                    task.path,
                    key,
                )


def total_steps(train: TrainConfig, batches_per_epoch: int | None) -> int | None:
    """Steps of the whole run; None where the rows are not counted before they are read."""
    if train.num_steps is not None or batches_per_epoch is None:
        return train.num_steps
    return batches_per_epoch * (train.num_epochs or 0)


def timetable_of(train: TrainConfig) -> Timetable:
    """When to end, log, save and evaluate; evaluation follows every save unless eval_steps says otherwise."""
    save = Every(steps=train.save_checkpoints_steps or None, epochs=train.save_checkpoints_epochs or None)
    evaluate = Every(steps=train.eval_steps) if train.eval_steps else save
    log = Every(steps=train.log_step_count_steps)
    return Timetable(End(train.num_steps, train.num_epochs), save, evaluate, log)
