"""A training run: what is decided before it allocates anything, and then everything a trainer takes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torchrec.optim.keyed import KeyedOptimizer

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import format_size
from penstock.data import window as row_store
from penstock.data.memory_plan import EVALUATION
from penstock.data.prefetch import Prefetch
from penstock.data.shuffle import ShuffleQuality
from penstock.distributed.sharding import dense_parameters
from penstock.metrics.windows import window_misfit
from penstock.models.model import Model
from penstock.observe.summary import aligned, counted, planned_use, use_lines
from penstock.optim.dense import dense_optimizers
from penstock.optim.schedules import build_schedule
from penstock.optim.sections import DenseOptimizer
from penstock.optim.sparse import table_parameters
from penstock.readers.order import Shard
from penstock.run.build import (
    METRICS,
    TRAIN_METRICS,
    ShardedModel,
    bound_metrics,
    build_parser,
    evaluation_metrics,
    group_columns,
    make_model,
    shard_model,
    share_metrics,
    training_metrics,
)
from penstock.run.data import (
    DataSource,
    batch_rows,
    find_files,
    open_source,
    plan_data_path,
    shuffle_rows,
    training_batches,
)
from penstock.run.requirements import model_section, require_for_training, train_section
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryMonitor, limit_of
from penstock.tensors.batch import Batch
from penstock.training.best import EarlyStop
from penstock.training.learning_rates import LearningRates
from penstock.training.precision import PRECISIONS, LossScaling, gradient_clipper
from penstock.training.progress import End, Every, Timetable, TrainingProgress
from penstock.training.sections import GradScaler, TrainConfig
from penstock.training.step import TrainStep
from penstock.training.task_metrics import TaskMetrics

logger = logging.getLogger(__name__)

DENSE_COPIES = 4
"""A dense parameter, its gradient, and two moments."""
AMSGRAD_COPIES = 1
"""The largest second moment so far."""
AVERAGE_COPIES = 2
"""A running mean, and the parameter that waits while the mean stands in for it."""
EMBEDDED_COPIES = 12
"""Looked-up vectors, groups joined from them, gradients and temporaries, as multiples of the width of all groups."""
LAYER_COPIES = 4
"""Output, activation and their gradients, as multiples of a layer's width."""
FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    source: DataSource
    evaluation_source: DataSource | None
    model: Model
    """Without its tables, which are allocated when it is sharded."""
    num_shuffle_rows: int
    num_workers: int
    budget: MemoryBudget
    grouping_columns: tuple[str, ...] = ()
    """Columns by which metrics group rows, in training and in evaluation."""


def plan_training(
    run: RunConfig, monitor: MemoryMonitor, saved_shuffle_rows: int | None = None, beside: Path | None = None
) -> TrainingPlan:
    """Look at the data and count the model, in this order: what is wrong shows before it costs.

    A run that continues keeps the number of rows that its shuffle buffer had (`saved_shuffle_rows`). `beside` is the
    folder of the run, where indexes of its data are kept; without it nothing is written.
    """
    train, data = train_section(run), run.data_config
    source = source_of(run, "train_input_path", beside)
    evaluation_source = source_of(run, "eval_input_path", beside) if run.eval_input_path else None
    torch.manual_seed(train.seed)
    model = make_model(run, list(source.parser.features), "meta")
    num_shuffle_rows = saved_shuffle_rows if saved_shuffle_rows is not None else shuffle_rows(data, source)
    budget = MemoryBudget(limit_of(run.memory))
    if num_shuffle_rows:
        row_store.warm()
    share_model(
        budget,
        monitor.sample(),
        model_bytes(model, train),
        step_bytes(model, batch_rows(data)),
        "data_config.max_batch_rows" if data.batch_cost_size else "data_config.batch_size",
    )
    share_metrics(budget, TRAIN_METRICS, training_metrics(model), batch_rows(data), "train_metrics")
    if evaluation_source is not None:
        num_rows = evaluation_rows(run, evaluation_source)
        share_metrics(budget, EVALUATION + METRICS, evaluation_metrics(model), num_rows)
    others = {EVALUATION: evaluation_source.scanned} if evaluation_source else {}
    num_workers = plan_data_path(budget, data, source, num_shuffle_rows, others)
    grouping = [group_columns(run, training=training).values() for training in (True, False)]
    columns = tuple(column for columns in grouping for column in columns)
    return TrainingPlan(source, evaluation_source, model, num_shuffle_rows, num_workers, budget, columns)


def share_model(
    budget: MemoryBudget,
    process_bytes: int,
    model_bytes: int,
    step_bytes: int,
    rows_setting: str = "data_config.batch_size",
) -> None:
    """Shares of what cannot be made smaller; `rows_setting` decides how many rows a step has."""
    if process_bytes > budget.limit_bytes:
        raise BudgetExceeded(
            f"memory.limit: is {format_size(budget.limit_bytes)}, but python, torch and torchrec take "
            f"{format_size(process_bytes)} just by being imported; raise it"
        )
    budget.share("process", process_bytes)
    budget.share("model", model_bytes, setting="embedding sizes in feature_configs")
    budget.share("step", step_bytes, setting=rows_setting)


def evaluation_rows(run: RunConfig, source: DataSource) -> int:
    num_rows, num_steps = source.scanned.num_rows, run.eval_config.num_steps
    batch_size = run.data_config.resolved_eval_batch_size()
    return num_rows if num_steps is None else min(num_rows, num_steps * batch_size)


def source_of(run: RunConfig, key: str, beside: Path | None = None) -> DataSource:
    """The data of one path of the run file, with labels; what is kept of them goes into a folder of their own."""
    files = find_files(getattr(run, key), key)
    parser = build_parser(run, [file.path for file in files])
    folder = None if beside is None else beside / "data" / key.removesuffix("_input_path")
    training = key == "train_input_path"
    groups = tuple(group_columns(run, training=training).values())
    return open_source(run.data_config, files, parser, groups, beside=folder, scoring=not training)


def with_joined_batches(run: RunConfig) -> RunConfig:
    """The run as it is computed: larger batches, and no accumulation any more. Evaluation keeps its batches."""
    train, data = train_section(run), run.data_config
    joined = train.gradient_accumulation_steps or 1
    if joined == 1:
        return run
    sizes = {
        name: getattr(data, name) * joined
        for name in ("batch_size", "batch_cost_size", "max_batch_rows")
        if getattr(data, name) is not None
    }
    sizes["eval_batch_size"] = data.resolved_eval_batch_size()
    logger.info(
        "gradient_accumulation_steps: a step takes %d batches as one, as batch_size: %d would",
        joined,
        sizes["batch_size"],
    )
    return run.model_copy(
        update={
            "data_config": data.model_copy(update=sizes),
            "train_config": train.model_copy(update={"gradient_accumulation_steps": None}),
        }
    )


def model_bytes(model: Model, train: TrainConfig | None) -> int:
    tables = dict(table_parameters(model))
    table_bytes = sum(table.nbytes for table in tables.values())
    dense_bytes = sum(parameter.nbytes for name, parameter in model.named_parameters() if name not in tables)
    if train is None:
        return table_bytes + dense_bytes
    section = train.sparse_optimizer
    chosen = None if section is None else section.chosen("optimizer")
    if chosen is not None:
        per_weight = chosen[1].state_per_weight
        for table in tables.values():
            table_bytes += table.shape[0] * 4 if per_weight is None else int(table.nbytes * per_weight)
    return table_bytes + dense_bytes * dense_copies(train.dense_optimizer)


def dense_copies(section: DenseOptimizer) -> int:
    """How often a dense parameter is there, with what optimizers keep beside it; as the hungriest part asks for."""
    chosen = [options.chosen("optimizer") for options in (section, *section.part_optimizers)]
    has_amsgrad = any(getattr(each[1], "amsgrad", False) for each in chosen if each is not None)
    copies = DENSE_COPIES + (AMSGRAD_COPIES if has_amsgrad else 0)
    return copies + (AVERAGE_COPIES if section.ema is not None else 0)


def step_bytes(model: Model, batch_size: int) -> int:
    """Bytes that one step needs beside the parameters: what a batch is embedded to, and what the layers make of it."""
    groups = model.embedding_group
    embedded = sum(groups.widths.values())
    layers = sum(module.out_features for module in model.modules() if isinstance(module, torch.nn.Linear))
    return batch_size * (embedded * EMBEDDED_COPIES + layers * LAYER_COPIES) * FLOAT_BYTES


@dataclass(frozen=True, slots=True)
class Training:
    plan: TrainingPlan
    sharded: ShardedModel
    dense_optimizer: KeyedOptimizer
    step: TrainStep
    rates: LearningRates
    batches: Prefetch[Batch]
    progress: TrainingProgress
    timetable: Timetable
    shard: Shard
    total_steps: int | None
    """How many steps the whole run takes, where that is known before it is done."""
    quality: ShuffleQuality | None
    """How well the rows are mixed, where they are shuffled."""
    early_stop: EarlyStop | None
    scaling: LossScaling | None
    """How losses are scaled, in FP16."""
    train_metrics: TaskMetrics


@contextmanager
def build_training(run: RunConfig, session: Session, plan: TrainingPlan) -> Iterator[Training]:
    train, data = train_section(run), run.data_config
    source, budget, model = plan.source, plan.budget, plan.model
    shard = Shard(session.world.rank, session.world.num_ranks)
    label = next(iter(data.label_fields), None)
    quality = ShuffleQuality(source.scanned.blocks, label) if plan.num_shuffle_rows else None
    with training_batches(
        data, source, budget, plan.num_shuffle_rows, shard, plan.num_workers, quality
    ) as batches:
        sharded = shard_model(model, train, session.world)
        parameters = dense_parameters(sharded.module)
        dense_optimizer, scheduled = dense_optimizers(train.dense_optimizer, parameters.items())
        if train.sparse_optimizer is not None:
            tables = {"sparse": (sharded.module.fused_optimizer, build_schedule(train.sparse_optimizer))}
            scheduled = {**tables, **scheduled}
        rates = LearningRates(scheduled)
        metrics, metrics_share = training_metrics(model, session.peers), budget.shares.get(TRAIN_METRICS)
        bound_metrics(metrics, metrics_share, batch_rows(data))
        warn_of_metrics(train, model, data.shuffle)
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
        total_steps = train.num_steps
        if total_steps is None and (epoch_batches := source.num_batches(data)) is not None:
            total_steps = epoch_batches * (train.num_epochs or 0)
        save = Every(steps=train.save_checkpoints_steps or None, epochs=train.save_checkpoints_epochs or None)
        # Evaluation follows every save unless eval_steps says otherwise.
        evaluate = Every(steps=train.eval_steps) if train.eval_steps else save
        log, end = Every(steps=train.log_step_count_steps), End(train.num_steps, train.num_epochs)
        yield Training(
            plan=plan,
            sharded=sharded,
            dense_optimizer=dense_optimizer,
            step=step,
            rates=rates,
            batches=batches,
            progress=TrainingProgress(),
            timetable=Timetable(end, save, evaluate, log),
            shard=shard,
            total_steps=total_steps,
            quality=quality,
            early_stop=EarlyStop.of(train.early_stopping, model_section(run).loss_names()),
            scaling=scaling,
            train_metrics=TaskMetrics(metrics, group_columns(run, training=True), share=metrics_share),
        )


def warn_of_metrics(train: TrainConfig, model: Model, shuffled: bool) -> None:
    """Warn of a metric in the middle of its window, and of one that compares rows that are neighbours in the data."""
    decay_steps = [config.decay_step for task in model.tasks for config in task.train_metrics]
    if decay_steps and (misfit := window_misfit(train.log_step_count_steps, decay_steps)):
        logger.warning("train_config: %s", misfit)
    for path, configs in [
        (f"{task.path}.{key}", getattr(task, key))
        for task in model.tasks
        for key in ("metrics", "train_metrics")
    ]:
        if not shuffled and any(config.xauc is not None and config.xauc.in_batch for config in configs):
            logger.warning(
                "%s: xauc with in_batch compares rows that lie side by side in the data, and "
                "data_config.shuffle is off; shuffle them, or leave in_batch out",
                path,
            )


def plan(run: RunConfig) -> str:
    """Look at the data, count the model, divide the limit, and describe it; nothing is allocated or written."""
    require_for_training(run)
    run = with_joined_batches(run)
    with computing(run) as session:
        planned = plan_training(run, session.monitor)
    scanned, num_batches = planned.source.scanned, planned.source.num_batches(run.data_config)
    rows, files = counted(scanned.num_rows, "row"), counted(len(scanned.files), "file")
    blocks = counted(len(scanned.blocks), "block")
    shuffled = f"in windows of {planned.num_shuffle_rows:,} rows" if planned.num_shuffle_rows else "no"
    return aligned(
        [
            ("data", f"{rows} of about {scanned.row_bytes:,} bytes, in {files} and {blocks}"),
            ("batches", "cut by cost" if num_batches is None else f"{num_batches:,} an epoch"),
            ("shuffle", shuffled),
            ("workers", str(planned.num_workers or "none: parsing is done in a thread of this process")),
            ("limit", format_size(planned.budget.limit_bytes)),
            *(
                ("" if index else "plan", line)
                for index, line in enumerate(use_lines(planned_use(planned.budget)))
            ),
        ]
    )
