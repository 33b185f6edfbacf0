"""A trained model, brought back from a checkpoint to score rows."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from penstock.checkpoint import Checkpoint, CheckpointStore
from penstock.config.errors import CheckpointError
from penstock.config.nearest import hint
from penstock.distributed.state import load_averages, load_model_state
from penstock.pipeline.averages import scores_by_averages
from penstock.pipeline.checkpoint_choice import (
    WORDS,
    checkpoint_at,
    checkpoint_of_run,
    means_a_checkpoint,
)
from penstock.pipeline.feature_meaning import require_same_meaning
from penstock.pipeline.memory_plan import share_model
from penstock.pipeline.model_dir import ModelDir
from penstock.pipeline.parts import used_features
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.sharded import ShardedModel, model_bytes, shard_model, step_bytes, unallocated_model
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryMonitor, limit_of
from penstock.runtime.world import World


@dataclass(frozen=True, slots=True)
class Scoring:
    """A model with the parameters of a checkpoint, and the budget it was counted in."""

    sharded: ShardedModel
    checkpoint: Checkpoint
    budget: MemoryBudget
    monitor: MemoryMonitor


def open_scoring(run: RunConfig, which: str | None, monitor: MemoryMonitor, batch_size: int) -> Scoring:
    """Load a checkpoint into a model without optimizers. A process group must be open."""
    with monitor.stage("build"):
        checkpoint = find_checkpoint(run, which)
        require_same_meaning(checkpoint, run)
        model = unallocated_model(run, used_features(run))
        budget = MemoryBudget(limit_of(run.memory))
        share_model(budget, monitor.sample(), model_bytes(model, None), step_bytes(model, batch_size))
        sharded = shard_model(model, None, World())
        load_whole_model(checkpoint, sharded.module)
        if scores_by_averages(run):
            load_averages(checkpoint, sharded.module)
    return Scoring(sharded, checkpoint, budget, monitor)


def load_whole_model(checkpoint: Checkpoint, model: nn.Module) -> None:
    """Bring a model, and not its optimizers, to where it was; nothing of it may be missing or left over."""
    difference = load_model_state(checkpoint, model)
    if difference:
        raise CheckpointError(f"{checkpoint.path}: does not fit this model: {difference}")


def find_checkpoint(run: RunConfig, which: str | None) -> Checkpoint:
    """The latest checkpoint, the best, or the one that a path means; every byte of it is checked.

    Where nothing is said: the one that the run ended with, which early stopping may have gone back to.
    """
    folder = ModelDir.of(run.model_dir)
    if which is None or which in WORDS:
        return checkpoint_of_run(folder, which, run.export_config)
    if means_a_checkpoint(Path(which)):
        return checkpoint_at(Path(which), "--checkpoint_path")
    folder.require_checkpoints()
    store = CheckpointStore(folder.checkpoints)
    return store.open(named_step(which, store))


def named_step(name: str, store: CheckpointStore) -> int:
    """The step of a checkpoint that the model_dir has under this name, such as step-100."""
    known = {f"step-{step}": step for step in store.steps()}
    if name not in known:
        raise CheckpointError(
            f"--checkpoint_path: there is no checkpoint '{name}'; {hint(name, ['latest', 'best', *known])}"
        )
    return known[name]
