"""Everything that is decided before a training run allocates anything."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from penstock.data import window as row_store
from penstock.data.memory_plan import EVALUATION, share_model
from penstock.models.model import Model
from penstock.observe.memory_use import StageUse, planned_use
from penstock.optim.sections import DenseOptimizer
from penstock.optim.sparse import table_parameters
from penstock.run.build import build_parser, unallocated_model
from penstock.run.data import DataSource, batch_rows, find_files, open_source, plan_data_path, shuffle_rows
from penstock.run.metrics import (
    METRICS,
    TRAIN_METRICS,
    evaluation_metrics,
    group_columns,
    share_metrics,
    training_metrics,
)
from penstock.run.requirements import require_for_training, train_section
from penstock.run.run_config import RunConfig
from penstock.run.session import computing
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryMonitor, limit_of
from penstock.training.sections import TrainConfig

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
    """What a run will read, in which order, and how its memory is divided."""

    source: DataSource
    evaluation_source: DataSource | None
    model: Model
    """Without its tables, which are allocated when it is sharded."""
    num_shuffle_rows: int
    num_workers: int
    budget: MemoryBudget
    grouping_columns: tuple[str, ...] = ()
    """Columns by which metrics group rows, in training and in evaluation."""

    @property
    def workers_text(self) -> str:
        return str(self.num_workers or "none: parsing is done in a thread of this process")


def plan_training(
    run: RunConfig,
    monitor: MemoryMonitor,
    saved_shuffle_rows: int | None = None,
    beside: Path | None = None,
) -> TrainingPlan:
    """Look at the data and count the model, in this order: what is wrong shows before it costs.

    A run that continues keeps the number of rows that its shuffle buffer had (`saved_shuffle_rows`). `beside` is the
    folder of the run, where indexes of its data are kept; without it nothing is written.
    """
    train, data = train_section(run), run.data_config
    source = source_of(run, "train_input_path", beside)
    evaluation_source = source_of(run, "eval_input_path", beside) if run.eval_input_path else None
    torch.manual_seed(train.seed)
    model = unallocated_model(run, list(source.parser.features))
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


def evaluation_rows(run: RunConfig, source: DataSource) -> int:
    num_steps, batch_size = run.eval_config.num_steps, run.data_config.resolved_eval_batch_size()
    return (
        source.scanned.num_rows if num_steps is None else min(source.scanned.num_rows, num_steps * batch_size)
    )


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
    """Bytes of tables, dense parameters and the state of their optimizers."""
    tables = dict(table_parameters(model))
    table_bytes = sum(table.nbytes + _state_bytes(table, train) for table in tables.values())
    dense = [parameter.nbytes for name, parameter in model.named_parameters() if name not in tables]
    if train is None:
        return table_bytes + sum(dense)
    return table_bytes + sum(dense) * dense_copies(train.dense_optimizer)


def dense_copies(section: DenseOptimizer) -> int:
    """How often a dense parameter is there, with what optimizers keep beside it; as the hungriest part asks for."""
    chosen = [options.chosen("optimizer") for options in (section, *section.part_optimizers)]
    has_amsgrad = any(getattr(each[1], "amsgrad", False) for each in chosen if each is not None)
    return (
        DENSE_COPIES
        + (AMSGRAD_COPIES if has_amsgrad else 0)
        + (AVERAGE_COPIES if section.ema is not None else 0)
    )


def _state_bytes(table: torch.Tensor, train: TrainConfig | None) -> int:
    section = None if train is None else train.sparse_optimizer
    chosen = None if section is None else section.chosen("optimizer")
    if chosen is None:
        return 0
    per_weight = chosen[1].state_per_weight
    return int(table.nbytes * per_weight) if per_weight is not None else table.shape[0] * 4


def step_bytes(model: Model, batch_size: int) -> int:
    """Bytes that one step needs beside the parameters: what a batch is embedded to, and what the layers make of it."""
    groups = model.embedding_group
    embedded = sum(groups.width(name) for name in groups.plan.groups)
    layers = sum(module.out_features for module in model.modules() if isinstance(module, torch.nn.Linear))
    return batch_size * (embedded * EMBEDDED_COPIES + layers * LAYER_COPIES) * FLOAT_BYTES


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a run reads, and how the limit is divided."""

    limit_bytes: int
    stages: Sequence[StageUse]
    num_files: int
    num_rows: int
    row_bytes: int
    num_blocks: int
    shuffle_rows: int
    batches_per_epoch: int | None
    num_workers: str


def plan(run: RunConfig) -> PlanResult:
    """Look at the data, count the model, divide the limit; nothing is allocated and nothing written."""
    require_for_training(run)
    run = with_joined_batches(run)
    with computing(run) as session:
        planned = plan_training(run, session.monitor)
    scanned = planned.source.scanned
    return PlanResult(
        limit_bytes=planned.budget.limit_bytes,
        stages=planned_use(planned.budget),
        num_files=len(scanned.files),
        num_rows=scanned.num_rows,
        row_bytes=scanned.row_bytes,
        num_blocks=len(scanned.blocks),
        shuffle_rows=planned.num_shuffle_rows,
        batches_per_epoch=planned.source.num_batches(run.data_config),
        num_workers=planned.workers_text,
    )
