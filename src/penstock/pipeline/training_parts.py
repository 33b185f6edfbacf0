"""Everything a training loop takes, built from a run file."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torchrec.optim.keyed import KeyedOptimizer

from penstock.batching.prefetch import Prefetch
from penstock.distributed.sharding import dense_parameters
from penstock.loops.cadence import End, Every
from penstock.loops.progress import TrainingProgress
from penstock.loops.sections import TrainConfig
from penstock.loops.step import LearningRates, TrainStep
from penstock.loops.train import Timetable
from penstock.optim.dense import dense_optimizer
from penstock.optim.schedules import build_schedule
from penstock.pipeline.data import DataSource, find_files, open_source, shuffle_rows, training_batches
from penstock.pipeline.memory_plan import EVALUATION, StageShares, limit_of, share_data_path, share_model
from penstock.pipeline.parts import build_parser
from penstock.pipeline.requirements import train_section
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.sharded import ShardedModel, model_bytes, shard_model, step_bytes, unallocated_model
from penstock.readers.blocks import Shard
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryMonitor
from penstock.runtime.world import World
from penstock.tensors.batch import Batch


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


@contextmanager
def build_training(
    run: RunConfig,
    world: World,
    monitor: MemoryMonitor,
    saved_shuffle_rows: int | None = None,
    beside: Path | None = None,
) -> Iterator[Training]:
    """Open the data, plan the memory, make the model, in this order: what is wrong shows before it costs.

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
    share_model(budget, monitor.sample(), model_bytes(model, train), step_bytes(model, data.batch_size))
    share_data_path(
        budget,
        {"": source.survey} | ({EVALUATION: evaluation_source.survey} if evaluation_source else {}),
        shuffle_bytes=num_shuffle_rows * source.survey.row_bytes,
        prefetch_bytes=data.prefetch,
        by_cost=source.cutting.cost is not None,
    )
    with ExitStack() as stack:
        shard = Shard(world.rank, world.num_ranks)
        batches = stack.enter_context(
            training_batches(data, source, StageShares.of(budget), num_shuffle_rows, shard)
        )
        sharded = shard_model(model, train, world)
        dense = dense_optimizer(train.dense_optimizer, dense_parameters(sharded.module).items())
        rates = LearningRates(
            {
                "sparse": (sharded.module.fused_optimizer, build_schedule(train.sparse_optimizer)),
                "dense": (dense, build_schedule(train.dense_optimizer)),
            }
        )
        yield Training(
            sharded=sharded,
            dense_optimizer=dense,
            step=TrainStep(sharded.module, dense, rates, sharded.device),
            rates=rates,
            batches=batches,
            source=source,
            evaluation_source=evaluation_source,
            progress=TrainingProgress(),
            timetable=timetable_of(train),
            budget=budget,
            num_shuffle_rows=num_shuffle_rows,
            shard=shard,
            total_steps=total_steps(train, source.num_batches(data)),
        )


def source_of(run: RunConfig, key: str, beside: Path | None = None) -> DataSource:
    """The data of one path of the run file, with labels; what is kept of them goes into a folder of their own."""
    files = find_files(getattr(run, key), key)
    parser = build_parser(run, [file.path for file in files])
    folder = None if beside is None else beside / "data" / key.removesuffix("_input_path")
    return open_source(run.data_config, files, parser, beside=folder)


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
