"""A run's data as batches, for loops of one's own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.data.memory_plan import StageShares, share_data_path
from penstock.readers.order import Shard
from penstock.run.build import build_parser
from penstock.run.data import (
    DataSource,
    find_files,
    open_source,
    plan_data_path,
    resumed_state,
    scoring_batches,
    shuffle_rows,
    training_batches,
)
from penstock.run.requirements import require_available
from penstock.run.run_config import DataConfig, RunConfig
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import limit_of
from penstock.runtime.world import State, World

if TYPE_CHECKING:
    from penstock.data.prefetch import Prefetch
    from penstock.tensors.batch import Batch

MODES = ("train", "eval", "predict")


def create_dataloader(
    run: RunConfig,
    mode: Literal["train", "eval", "predict"] = "train",
    world: World | None = None,
    states: Sequence[State] = (),
) -> "Prefetch[Batch]":
    """Batches of a run's data, with `state_dict`; use it in a `with` block, or close it.

    "train" reads train_input_path, in training order; "eval" and "predict" read eval_input_path in the order of the
    files, "predict" without labels. With a `world` of several ranks, each rank reads its part of the rows. `states`
    are what `state_dict` gave on every rank at one moment: the rest of that epoch follows, on as many ranks as there
    are now.
    """
    if mode not in MODES:
        raise ConfigError(f"create_dataloader: mode is {mode!r}; {hint(str(mode), MODES)}")
    require_available(run)
    _check_places(world, states)
    world = world or World()
    key = "train_input_path" if mode == "train" else "eval_input_path"
    files = find_files(getattr(run, key), key)
    parser = build_parser(run, [file.path for file in files], with_labels=mode != "predict")
    source = open_source(run.data_config, files, parser, scoring=mode != "train")
    budget, shard = MemoryBudget(limit_of(run.memory)), Shard(world.rank, world.num_ranks)
    load = _training if mode == "train" else _scoring
    batches = load(run.data_config, source, budget, shard)
    if states:
        batches.load_state_dict(resumed_state(states, source, StageShares.of(budget), shard))
    return batches


def _check_places(world: object, states: object) -> None:
    """Refuse what is easily given in place of a world, or of a list of states."""
    if world is not None and not isinstance(world, World):
        raise ConfigError(f"create_dataloader: world is {world!r}; give a penstock.World(rank, num_ranks)")
    if isinstance(states, str) or not isinstance(states, Sequence):
        raise ConfigError(
            f"create_dataloader: states is an object of type {type(states).__name__}; give a list with what "
            "state_dict() gave on every rank, such as states=[state]"
        )


def _training(data: DataConfig, source: DataSource, budget: MemoryBudget, shard: Shard) -> "Prefetch[Batch]":
    num_shuffle_rows = shuffle_rows(data, source)
    num_workers = plan_data_path(budget, data, source, num_shuffle_rows)
    shares = StageShares.of(budget)
    return training_batches(data, source, shares, num_shuffle_rows, shard, num_workers)


def _scoring(data: DataConfig, source: DataSource, budget: MemoryBudget, shard: Shard) -> "Prefetch[Batch]":
    share_data_path(budget, {"": source.scanned}, prefetch_bytes=data.prefetch)
    shares = StageShares.of(budget)
    return scoring_batches(
        source,
        shares,
        batch_size=data.resolved_eval_batch_size(),
        shard=shard,
        pin_memory=data.pin_memory and bool(source.parser.label_fields),
    )
