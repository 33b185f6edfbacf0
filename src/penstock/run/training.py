"""A training run: what is decided before it allocates anything, and then everything a trainer takes."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import torch
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.keyed import KeyedOptimizer

from penstock import models
from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.data import window
from penstock.data.memory_plan import EVALUATION
from penstock.data.prefetch import Prefetch
from penstock.data.shuffle import ShuffleQuality
from penstock.distributed.groups import compute_device
from penstock.distributed.sharding import dense_parameters, shard
from penstock.distributed.state import reset_rows
from penstock.features.sections import named_features
from penstock.metrics.windows import window_misfit
from penstock.metrics.wiring import BoundMetric, build_metrics, memory_needs
from penstock.models.model import Model, TrainWrapper
from penstock.observe.data_profile import DataLook, profile_data
from penstock.observe.summary import StageUse, aligned, counted, planned_use, use_lines
from penstock.optim.dense import DenseAverages, dense_optimizers
from penstock.optim.schedules import build_schedule
from penstock.optim.sparse import sparse_optimizer, table_parameters
from penstock.readers.order import Shard
from penstock.run.data import (
    DataSource,
    LargestBatch,
    build_parser,
    group_columns,
    open_batches,
    plan_data_path,
    source_of,
)
from penstock.run.requirements import model_section, require_available, require_for_training, train_section
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.run.unknown_values import SampledValues
from penstock.runtime.budget import MemoryBudget, Share
from penstock.runtime.memory import limit_of
from penstock.runtime.world import Collectives
from penstock.tensors.batch import Batch
from penstock.training.best import EarlyStop
from penstock.training.events import End, Every, Timetable, TrainingProgress
from penstock.training.precision import PRECISIONS, LossScaling, gradient_clipper
from penstock.training.sections import GradScaler, TrainConfig
from penstock.training.step import LearningRates, TrainStep
from penstock.training.task_metrics import TaskMetrics

logger = logging.getLogger(__name__)

DENSE_COPIES = 4
"""A dense parameter, its gradient, and two moments."""
AMSGRAD_COPIES = 1
"""The largest second moment so far."""
AVERAGE_COPIES = 2
"""A running mean, and the parameter that waits while the mean stands in for it."""
FIRST_STEP_BYTES, FIRST_SCORING_BYTES = 12 * MIB, 8 * MIB
"""What libraries load and allocate once, when the first batch is computed."""
STEP_ALLOCATED, SCORING_ALLOCATED = 1.65, 1.5
"""Bytes that the allocator takes for each byte of tensors: sizes differ from batch to batch, and leave gaps."""
BATCH_COPIES = 4
"""A batch in work, one that waits to be queued, and one that is being made, parsed and packed."""
METRICS = "metrics"
"""The share of what an evaluation measures, behind the stage prefix."""
TRAIN_METRICS = "train metrics"
MIN_SHARED_BYTES = MIB
"""Less than this fits into what the plan leaves free."""
MAX_PART_OF_REST = 4
"""Metrics that need less than they could use get a quarter of what is left, and the data path the rest."""


def build_model(run: RunConfig) -> Model:
    """The model alone, unsharded, with fresh parameters: `model.predict(batch)`, `model.loss(predictions, batch)`.

    Its metrics are attached: `model.update_metric(predictions, batch)`, `model.compute_metric()`, and the same with
    `train_metric`. Batches must carry along the columns that metrics group by (`reserved_columns` of build_batch).
    """
    require_available(run)
    data, features = run.data_config, build_parser(run, with_labels=False).features
    model = models.build_model(model_section(run), features, data.label_fields, data.sample_weight_fields)
    model.attach_metrics(
        TaskMetrics(metrics_of(model, "metrics"), group_columns(run, training=False)),
        TaskMetrics(metrics_of(model, "train_metrics"), group_columns(run, training=True)),
    )
    return model


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    source: DataSource
    evaluation_source: DataSource | None
    model: Model
    """Without its tables, which are allocated when it is sharded."""
    num_shuffle_rows: int
    num_workers: int
    budget: MemoryBudget
    quality: ShuffleQuality | None
    """How well the rows are mixed, where they are shuffled."""
    train_metrics: TaskMetrics
    grouping_columns: tuple[str, ...] = ()
    """Columns by which metrics group rows, in training and in evaluation."""

    def expecting(self, trained: Mapping[str, str], sampled: Mapping[str, str]) -> "TrainingPlan":
        """The same, but data are refused whose columns are of another kind than those before (`DataSource.expecting`).

        `trained` are the kinds of the checkpoint that a run goes on from, `sampled` those with its own data.
        """
        evaluation = self.evaluation_source
        return replace(
            self,
            source=self.source.expecting(trained),
            evaluation_source=None if evaluation is None else evaluation.expecting(sampled),
        )


def plan_training(
    run: RunConfig, session: Session, saved_shuffle_rows: int | None = None, run_folder: Path | None = None
) -> TrainingPlan:
    """Look at the data and count the model, in this order: what is wrong shows before it costs.

    A run that continues keeps the number of rows that its shuffle buffer had (`saved_shuffle_rows`). In
    `run_folder` indexes of its data are kept; without it nothing is written.
    """
    train, data = train_section(run), run.data_config
    source = source_of(run, "train_input_path", run_folder)
    evaluation_source = source_of(run, "eval_input_path", run_folder) if run.eval_input_path else None
    if data.shuffle:
        window.warm()  # before the process is measured
    torch.manual_seed(train.seed)
    features, labels = source.parser.features, data.label_fields
    model = models.build_model(
        model_section(run), features, labels, data.sample_weight_fields, table_device="meta"
    )
    metrics = metrics_of(model, "train_metrics", session.peers)
    evaluation_metrics = metrics_of(model, "metrics") if evaluation_source is not None else {}
    rows = source.max_batch_rows
    steps = [step_use(model, source.largest_batch, training=True)]
    if evaluation_source is not None:
        steps.append(step_use(model, evaluation_source.largest_batch, training=False))
    budget = share_model(limit_of(run.memory), session.settled_bytes(), model, steps, train)
    session.monitor.leased_bytes = lambda: budget.held_bytes
    metrics_share = share_metrics(budget, TRAIN_METRICS, metrics, rows, "train_metrics")
    others = {}
    if evaluation_source is not None:
        num_rows = evaluation_rows(run, evaluation_source)
        share_metrics(budget, EVALUATION + METRICS, evaluation_metrics, num_rows)
        others = {EVALUATION: evaluation_source.scanned}
    num_shuffle_rows, num_workers = plan_data_path(budget, data, source, others, saved_shuffle_rows)
    label = next((name for name in data.label_fields if name not in data.label_map), None)
    groups, evaluation_groups = (group_columns(run, training=training) for training in (True, False))
    return TrainingPlan(
        source,
        evaluation_source,
        model,
        num_shuffle_rows,
        num_workers,
        budget,
        quality=ShuffleQuality(source.scanned.blocks, label) if num_shuffle_rows else None,
        train_metrics=TaskMetrics(metrics, groups, share=metrics_share, num_rows=rows),
        grouping_columns=(*groups.values(), *evaluation_groups.values()),
    )


def profile_training_data(run: RunConfig, plan: TrainingPlan, process_bytes: int) -> DataLook:
    """A short look at the columns that are read, with what the run does with them, labels and weights first."""
    source, parser = plan.source, plan.source.parser
    found = [(column, "label") for column in parser.label_fields]
    found += [(column, "sample weight") for column in parser.sample_weight_fields]
    found += [(column, "mask of classes") for column in parser.masks]
    found += [(column, f"session {name}") for name, column in parser.sessions.items()]
    kinds = {named.name: named.key[2] for named in named_features(run.feature_configs)}
    for feature in parser.features:
        use = f"{kinds.get(feature.name, 'feature')} {feature.name}"
        found += [(column, use) for column in feature.inputs]
    found += [(column, "grouping of metrics") for column in plan.grouping_columns]
    if source.cost is not None:
        found += [(column, "cost of a row") for column in source.cost.columns]
    if source.bucketing is not None:
        found.append((source.bucketing.length.column, "length of a row"))
    names = source.scanned.columns.names
    uses: dict[str, list[str]] = {column: [] for column, _ in found if column in names}
    for column, use in found:
        if column in uses and use not in uses[column]:
            uses[column].append(use)
    uses |= {column: [] for column in names if column not in uses}
    values = SampledValues(parser)
    try:
        look = profile_data(
            run.data_config, source.scanned, source.request, uses, plan.budget, process_bytes, values.add
        )
    except Exception as error:
        look = DataLook.failed(error)
    finally:
        pa.default_memory_pool().release_unused()
    bad_value = None if source.request.quarantine is not None else values.bad_value
    look.record.update(
        {"value_counts": values.records(), "column_kinds": values.kinds, "bad_value": bad_value}
    )
    return look


def evaluation_rows(run: RunConfig, source: DataSource) -> int:
    num_rows, num_steps = source.scanned.num_rows, run.eval_config.num_steps
    if num_steps is None or (source.by_cost and run.data_config.max_batch_rows is None):
        return num_rows
    return min(num_rows, num_steps * source.max_batch_rows)


def with_joined_batches(run: RunConfig) -> RunConfig:
    """The run as it is computed: without gradient accumulation, but larger batches. Evaluation keeps its batches."""
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


def step_use(model: Model, batch: LargestBatch, *, training: bool) -> StageUse:
    """What a batch takes beside the model, from the moment it is parsed; `training` keeps what gradients need."""
    once_bytes, allocated = FIRST_SCORING_BYTES, SCORING_ALLOCATED
    if training:
        once_bytes, allocated = FIRST_STEP_BYTES, STEP_ALLOCATED
    row_bytes = allocated * model.row_bytes(training, batch.row_bytes) + BATCH_COPIES * batch.row_bytes
    return StageUse("step", once_bytes + int(batch.num_rows * row_bytes), setting=batch.setting)


def share_model(
    limit_bytes: int,
    process_bytes: int,
    model: Model,
    steps: Sequence[StageUse],
    train: TrainConfig | None = None,
) -> MemoryBudget:
    """A budget with shares of what cannot be made smaller: the process as it is, the model, a step.

    The model is its parameters and, with `train`, what optimizers keep beside them. `steps` (`step_use`) take turns, so
    that the largest counts.
    """
    tables = dict(table_parameters(model))
    table_bytes = sum(table.nbytes for table in tables.values())
    dense_bytes = sum(parameter.nbytes for name, parameter in model.named_parameters() if name not in tables)
    if train is not None:
        section, dense = train.sparse_optimizer, train.dense_optimizer
        chosen = None if section is None else section.chosen("optimizer")
        if chosen is not None:
            per_weight = chosen[1].state_per_weight
            for table in tables.values():
                table_bytes += (
                    table.shape[0] * 4 if per_weight is None else int(table.numel() * 4 * per_weight)
                )
        # Every dense parameter is counted as the hungriest part asks for.
        parts = [options.chosen("optimizer") for options in (dense, *dense.part_optimizers)]
        has_amsgrad = any(getattr(each[1], "amsgrad", False) for each in parts if each is not None)
        copies = DENSE_COPIES + (AMSGRAD_COPIES if has_amsgrad else 0)
        dense_bytes *= copies + (AVERAGE_COPIES if dense.ema is not None else 0)
    budget = MemoryBudget(limit_bytes)
    if process_bytes > limit_bytes:
        raise BudgetExceeded(
            f"memory.limit: is {format_size(limit_bytes)}, but python, torch and torchrec take "
            f"{format_size(process_bytes)} just by being imported; raise it"
        )
    budget.share("process", process_bytes)
    budget.share("model", table_bytes + dense_bytes, setting="embedding sizes in feature_configs")
    largest = max(steps, key=lambda step: step.planned_bytes)
    budget.share(largest.name, largest.planned_bytes, setting=largest.setting)
    return budget


def metrics_of(model: Model, key: str, collectives: Collectives | None = None) -> dict[str, BoundMetric]:
    """The "metrics" (of evaluation) or "train_metrics" of all tasks, fresh; names end in `_{tower}`, if any.

    With `collectives`, those of training are over the rows of all ranks.
    """
    found: dict[str, BoundMetric] = {}
    for task in model.tasks:
        found |= build_metrics(
            getattr(task, key),
            model.prediction_names,
            label=task.label,
            tower=task.tower,
            path=f"{task.path}.{key}",
            num_classes=task.num_class,
            collectives=collectives,
        )
    return found


def share_metrics(
    budget: MemoryBudget, name: str, metrics: Mapping[str, BoundMetric], num_rows: int, section: str = METRICS
) -> Share | None:
    """A share for metrics that will see so many rows (those of training: in a step); None where they need little.

    Metrics that keep rows need at least some of them in memory, and an exact xauc all of them. `section` holds them
    in the run file.
    """
    if not metrics:
        return None
    needs = memory_needs(metrics, num_rows)
    min_bytes, ample_bytes = (sum(each) for each in zip(*needs.values(), strict=True)) if needs else (0, 0)
    if ample_bytes < MIN_SHARED_BYTES:
        return None
    largest = max(needs, key=lambda key: needs[key].min_bytes)
    left = max(0, budget.unshared_bytes)
    if min_bytes > left:
        metric = metrics[largest].metric
        keeps_all: bool = getattr(getattr(metric, "metric", metric), "exact", False)
        raise BudgetExceeded(
            f"{name} need at least {format_size(min_bytes)}, {largest} {format_size(needs[largest].min_bytes)} of "
            f"it, but only {format_size(left)} of {format_size(budget.limit_bytes)} are left; "
            f"leave out {'exact of ' * keeps_all}{section}.{metrics[largest].name}, "
            "or raise memory.limit"
        )
    total = max(min_bytes, min(ample_bytes, left // MAX_PART_OF_REST))
    largest = max(needs, key=lambda key: needs[key].ample_bytes)
    return budget.share(name, total, setting=f"{section}.{largest}")


@dataclass(frozen=True, slots=True)
class ShardedModel:
    """The module that computes a loss, and the model inside that scores."""

    module: DistributedModelParallel
    model: Model
    device: torch.device
    """Where batches have to be."""
    averages: DenseAverages | None = None
    """Running means of the dense parameters, where the run keeps them."""


@dataclass(frozen=True, slots=True)
class Training:
    plan: TrainingPlan
    sharded: ShardedModel
    dense_optimizer: KeyedOptimizer
    step: TrainStep
    batches: Prefetch[Batch]
    progress: TrainingProgress
    timetable: Timetable
    shard: Shard
    total_steps: int | None
    """How many steps the whole run takes, where that is known before it is done."""
    early_stop: EarlyStop | None


@contextmanager
def build_training(run: RunConfig, session: Session, plan: TrainingPlan) -> Iterator[Training]:
    train, data, world = train_section(run), run.data_config, session.world
    source, model, early_stop = plan.source, plan.model, None
    own_shard = Shard(world.rank, world.num_ranks)
    warn_of_metrics(train, model, data.shuffle)
    with open_batches(
        data,
        source,
        plan.budget,
        num_shuffle_rows=plan.num_shuffle_rows,
        shard=own_shard,
        num_workers=plan.num_workers,
        quality=plan.quality,
    ) as batches:
        # Tables are allocated where they belong; their optimizer is fused into the backward pass.
        device, sparse = compute_device(world), train.sparse_optimizer
        fused = None if sparse is None else sparse_optimizer(sparse, device.type)
        module = shard(TrainWrapper(model), fused, world)
        reset_evicted_rows(
            model, module, 0.0 if fused is None else fused[1].get("initial_accumulator_value", 0.0)
        )
        parameters, ema = dense_parameters(module), train.dense_optimizer.ema
        averages = None if ema is None else DenseAverages(parameters, ema.decay)
        dense_optimizer, scheduled = dense_optimizers(train.dense_optimizer, parameters.items())
        if sparse is not None:
            scheduled = {"sparse": (module.fused_optimizer, build_schedule(sparse)), **scheduled}
        scaling, clipping = None, train.grad_clipping
        if train.mixed_precision == "FP16":
            section = train.grad_scaler or GradScaler()
            scaling = LossScaling(section, module, parameters.values(), device)
        step = TrainStep(
            module,
            dense_optimizer,
            LearningRates(scheduled),
            device,
            precision=PRECISIONS.get(train.mixed_precision or ""),
            scaling=scaling,
            clip=None if clipping is None else gradient_clipper(clipping, parameters.values()),
            follow=None if averages is None else averages.update,
        )
        total_steps = train.num_steps
        if total_steps is None and (epoch_batches := source.num_batches()) is not None:
            total_steps = epoch_batches * (train.num_epochs or 0)
        save = Every(steps=train.save_checkpoints_steps or None, epochs=train.save_checkpoints_epochs or None)
        # Evaluation follows every save unless eval_steps says otherwise.
        evaluate = Every(steps=train.eval_steps) if train.eval_steps else save
        log, end = Every(steps=train.log_step_count_steps), End(train.num_steps, train.num_epochs)
        if train.early_stopping is not None:
            early_stop = EarlyStop.of(train.early_stopping, model_section(run).loss_names())
        yield Training(
            plan=plan,
            sharded=ShardedModel(module, model, device, averages),
            dense_optimizer=dense_optimizer,
            step=step,
            batches=batches,
            progress=TrainingProgress(),
            timetable=Timetable(end, save, evaluate, log),
            shard=own_shard,
            total_steps=total_steps,
            early_stop=early_stop,
        )


def reset_evicted_rows(model: Model, module: DistributedModelParallel, accumulator: float) -> None:
    """Let rows of growing tables start anew when they change their keys."""
    group = model.embedding_group
    for name, rows in group.plan.growing.items():
        tables = {table: group.plan.tables[table].initializer for table in rows.tables}
        group.growing_table(name).on_evict = partial(reset_rows, module, tables, accumulator)


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
        planned = plan_training(run, session)
    scanned, num_batches = planned.source.scanned, planned.source.num_batches()
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
