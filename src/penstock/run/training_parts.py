"""Everything a training loop takes, built from a run file."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torchrec.optim.keyed import KeyedOptimizer

from penstock.data.memory_plan import StageShares
from penstock.data.prefetch import Prefetch
from penstock.data.quality import ShuffleQuality
from penstock.distributed.sharding import dense_parameters
from penstock.metrics.windows import window_misfit
from penstock.models.model import Model
from penstock.optim.dense import combined, dense_optimizers
from penstock.optim.schedules import Schedule, build_schedule
from penstock.readers.blocks import Shard
from penstock.run.best import early_stop_of
from penstock.run.build import TRAIN_METRICS, bound_metrics, group_columns, training_metrics
from penstock.run.data import DataSource, batch_rows, training_batches
from penstock.run.model import ShardedModel, shard_model
from penstock.run.plan import TrainingPlan
from penstock.run.requirements import loss_names, train_section
from penstock.run.run_config import RunConfig
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.world import Resumable, World
from penstock.tensors.batch import Batch
from penstock.training.early_stopping import EarlyStop
from penstock.training.learning_rates import LearningRates
from penstock.training.precision import PRECISIONS, LossScaling, gradient_clipper
from penstock.training.progress import End, Every, TrainingProgress
from penstock.training.sections import GradScaler, TrainConfig
from penstock.training.step import TrainStep
from penstock.training.task_metrics import TaskMetrics
from penstock.training.train import Timetable

logger = logging.getLogger(__name__)


@dataclass(slots=True)
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
    quality: ShuffleQuality | None = None
    """How well the rows are mixed, where they are shuffled."""
    model_bytes: int = 0
    """What building the model added to the process."""
    data_profile: Mapping[str, Any] | None = None
    """What the columns of the data hold, where they were looked at for this run."""
    early_stop: EarlyStop | None = None
    scaling: LossScaling | None = None
    """How losses are scaled, in FP16."""
    train_metrics: TaskMetrics = field(default_factory=lambda: TaskMetrics({}))
    resumables: dict[str, Resumable] = field(default_factory=dict)
    """What else has a state, by the name of its document in a checkpoint."""


@contextmanager
def build_training(run: RunConfig, world: World, plan: TrainingPlan) -> Iterator[Training]:
    """Make what was planned."""
    train, data = train_section(run), run.data_config
    source, budget, model = plan.source, plan.budget, plan.model
    with ExitStack() as stack:
        shard = Shard(world.rank, world.num_ranks)
        shares = StageShares.of(budget)
        label = next(iter(data.label_fields), None)
        quality = ShuffleQuality(source.survey.blocks, label) if plan.num_shuffle_rows else None
        batches = stack.enter_context(
            training_batches(data, source, shares, plan.num_shuffle_rows, shard, plan.num_workers, quality)
        )
        sharded = shard_model(model, train, world)
        scheduled = dense_optimizers(train.dense_optimizer, dense_parameters(sharded.module).items())
        dense = combined(scheduled)
        rates = LearningRates({**table_schedule(train, sharded), **scheduled})
        early_stop = early_stop_of(train.early_stopping, loss_names(run.model))
        metrics = train_metrics_of(run, model, budget)
        warn_of_windows(train, model)
        warn_of_cuts(model, data.shuffle)
        scaling = scaling_of(train, sharded)
        yield Training(
            sharded=sharded,
            dense_optimizer=dense,
            step=step_of(train, sharded, dense, rates, scaling),
            rates=rates,
            batches=batches,
            source=source,
            evaluation_source=plan.evaluation_source,
            progress=TrainingProgress(),
            timetable=timetable_of(train),
            budget=budget,
            num_shuffle_rows=plan.num_shuffle_rows,
            shard=shard,
            quality=quality,
            total_steps=total_steps(train, source.num_batches(data)),
            early_stop=early_stop,
            scaling=scaling,
            train_metrics=metrics,
            resumables=with_a_state(
                rates=rates, train_metrics=metrics, early_stopping=early_stop, loss_scaling=scaling
            ),
        )


def table_schedule(train: TrainConfig, sharded: ShardedModel) -> dict[str, tuple[KeyedOptimizer, Schedule]]:
    """How the rate of embedding tables goes; nothing where there are none."""
    section = train.sparse_optimizer
    return {} if section is None else {"sparse": (sharded.module.fused_optimizer, build_schedule(section))}


def with_a_state(**parts: Resumable | None) -> dict[str, Resumable]:
    """Those that the run has, by the names of their documents."""
    return {name: part for name, part in parts.items() if part is not None}


def step_of(
    train: TrainConfig,
    sharded: ShardedModel,
    dense: KeyedOptimizer,
    rates: LearningRates,
    scaling: LossScaling | None,
) -> TrainStep:
    """One step as the run file describes it: in which precision, how gradients are bounded, what follows."""
    return TrainStep(
        sharded.module,
        dense,
        rates,
        sharded.device,
        precision=PRECISIONS.get(train.mixed_precision or ""),
        scaling=scaling,
        clip=gradient_clipper(train.grad_clipping, dense_parameters(sharded.module).values()),
        follow=sharded.averages.update if sharded.averages is not None else lambda: None,
    )


def scaling_of(train: TrainConfig, sharded: ShardedModel) -> LossScaling | None:
    """How losses are scaled: in FP16, by the run file or as everybody does."""
    if train.mixed_precision != "FP16":
        return None
    section = train.grad_scaler or GradScaler()
    return LossScaling(section, sharded.module, dense_parameters(sharded.module).values(), sharded.device)


def train_metrics_of(run: RunConfig, model: Model, budget: MemoryBudget) -> TaskMetrics:
    """What is followed during training, within its share of the plan."""
    metrics, share = training_metrics(model), budget.shares.get(TRAIN_METRICS)
    bound_metrics(metrics, share, batch_rows(run.data_config))
    return TaskMetrics(metrics, group_columns(run, training=True), share=share)


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
    """When to end, save and evaluate; evaluation follows every save unless eval_steps says otherwise."""
    save = Every(steps=train.save_checkpoints_steps or None, epochs=train.save_checkpoints_epochs or None)
    evaluate = Every(steps=train.eval_steps) if train.eval_steps else save
    return Timetable(End(train.num_steps, train.num_epochs), save, evaluate)
