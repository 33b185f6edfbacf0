"""A trained model, brought back from the checkpoint that is meant."""

from dataclasses import dataclass
from pathlib import Path

from penstock.checkpoint import Checkpoint, CheckpointStore
from penstock.checkpoint.manifest import MANIFEST_NAME
from penstock.config.errors import CheckpointError
from penstock.config.nearest import hint
from penstock.data.memory_plan import share_model
from penstock.distributed.state import load_averages
from penstock.export.sections import ExportConfig
from penstock.run.build import ShardedModel, make_model, shard_model, used_features
from penstock.run.feature_meaning import require_same_meaning
from penstock.run.plan import model_bytes, step_bytes
from penstock.run.requirements import scores_by_averages
from penstock.run.run_config import RunConfig
from penstock.run.run_file import load_run
from penstock.run.session import Session
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import limit_of
from penstock.training.best import BestMetric, marked_step, require_best_step
from penstock.training.checkpoints import load_whole_model
from penstock.training.model_dir import ModelDir

WORDS = ("latest", "best")
FORMS = "a checkpoint (RUN/checkpoints/step-100), a run (RUN), or the best of a run (RUN/best)"


def best_metric(export: ExportConfig) -> BestMetric:
    """What makes a checkpoint the best; a direction that is not written is that of the metric's name."""
    written = "metric_larger_is_better" in export.model_fields_set
    return BestMetric(export.best_exporter_metric, export.metric_larger_is_better if written else None)


def checkpoint_of_run(folder: ModelDir, word: str | None, export: ExportConfig) -> Checkpoint:
    """The latest or the best checkpoint of a run; every byte of it is checked.

    Where nothing is said: the one that the run ended with, which early stopping may have gone back to.
    """
    folder.require_checkpoints()
    store = CheckpointStore(folder.checkpoints)
    if word == "best":
        return store.open(require_best_step(folder.evaluations.read(), best_metric(export), str(folder.path)))
    marked = marked_step(folder.path) if word is None else None
    if marked is not None and marked in store.steps():
        return store.open(marked)
    return store.require_latest()


def checkpoint_at(path: Path, key: str) -> Checkpoint:
    """The checkpoint that a path means; where it means none, `key` is the setting that the error speaks of.

    What the best of another run is, its own run.yaml says.
    """
    folder, word = _run_and_word(path)
    if folder is not None:
        export = load_run(folder.run_file).export_config if word == "best" else ExportConfig()
        return checkpoint_of_run(folder, word, export)
    if path.name.startswith("step-") or (path / MANIFEST_NAME).exists():
        store = CheckpointStore(path.parent)
        steps = [f"step-{step}" for step in store.all_steps()]
        if not path.exists() and steps:
            raise CheckpointError(f"{key}: '{path.parent}' has no '{path.name}'; {hint(path.name, steps)}")
        return store.open(path)
    problem = f"there is no '{path}'"
    if path.is_dir():
        problem = f"'{path}' has neither a {MANIFEST_NAME} nor a folder checkpoints"
    elif path.exists():
        problem = f"'{path}' is a file"
    elif str(path) in WORDS:
        problem = f"'{path}' does not say of which run"
    raise CheckpointError(f"{key}: {problem}; give {FORMS}")


def _run_and_word(path: Path) -> tuple[ModelDir | None, str | None]:
    """The run that a path names, and the word behind it; its folder of checkpoints stands for the run."""
    word = path.name if path.name in WORDS and not path.exists() else None
    run = path.parent if word else path
    run = run.parent if run.name == "checkpoints" else run
    folder = ModelDir(run)
    return (folder, word) if folder.checkpoints.is_dir() else (None, None)


@dataclass(frozen=True, slots=True)
class Scoring:
    """A model with the parameters of a checkpoint, and the budget it was counted in."""

    sharded: ShardedModel
    checkpoint: Checkpoint
    budget: MemoryBudget


def open_scoring(run: RunConfig, which: str | None, session: Session, batch_size: int) -> Scoring:
    """Load a checkpoint into a model without optimizers."""
    monitor = session.monitor
    with monitor.stage("build"):
        checkpoint = find_checkpoint(run, which)
        require_same_meaning(checkpoint, run)
        model = make_model(run, used_features(run), "meta")
        budget = MemoryBudget(limit_of(run.memory))
        share_model(budget, monitor.sample(), model_bytes(model, None), step_bytes(model, batch_size))
        sharded = shard_model(model, None, session.world)
        load_whole_model(checkpoint, sharded.module)
        if scores_by_averages(run):
            load_averages(checkpoint, sharded.module)
    return Scoring(sharded, checkpoint, budget)


def find_checkpoint(run: RunConfig, which: str | None) -> Checkpoint:
    """The latest checkpoint, the best, or the one that a path means; every byte of it is checked."""
    folder = ModelDir.of(run.model_dir)
    if which is None or which in WORDS:
        return checkpoint_of_run(folder, which, run.export_config)
    if Path(which).exists() or _run_and_word(Path(which))[0] is not None:
        return checkpoint_at(Path(which), "--checkpoint_path")
    folder.require_checkpoints()
    store = CheckpointStore(folder.checkpoints)
    known = {f"step-{step}": step for step in store.steps()}
    if which not in known:
        raise CheckpointError(
            f"--checkpoint_path: there is no checkpoint '{which}'; {hint(which, [*WORDS, *known])}"
        )
    return store.open(known[which])
