"""From which checkpoint a command starts: to score, to go on, or to be fine-tuned."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import yaml

from penstock.checkpoint import Checkpoint, CheckpointStore, TensorDifference, TensorMismatch
from penstock.checkpoint.manifest import MANIFEST_NAME
from penstock.checkpoint.storage import describe
from penstock.config.errors import CheckpointError, ConfigError, hint
from penstock.config.write import changed_settings, differences, dump_yaml, flattened
from penstock.distributed.groups import compute_device
from penstock.distributed.sharding import shard
from penstock.distributed.state import load_averages, load_model_state, model_state
from penstock.export.sections import ExportConfig
from penstock.models import build_model
from penstock.models.model import TrainWrapper
from penstock.observe.report.run_record import model_name
from penstock.observe.summary import counted
from penstock.run.data import LargestBatch, build_parser, resumed_state
from penstock.run.feature_meaning import other_meaning, require_same_meaning
from penstock.run.requirements import model_section, scores_by_averages, train_section
from penstock.run.run_config import RunConfig, load_run
from penstock.run.session import Session
from penstock.run.training import ShardedModel, Training, share_model, step_use
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import limit_of
from penstock.training.best import BestMetric, marked_step, require_best_step
from penstock.training.checkpoints import RunCheckpoints, load_whole_model
from penstock.training.model_dir import ModelDir

logger = logging.getLogger(__name__)

PARAM_MAP_KEY = "train_config.fine_tune_ckpt_param_map"
CHECKPOINT_WORDS = ("latest", "best")
_MODEL_PREFIX = "model."
SIZES = ("embedding_dim", "hash_bucket_size", "hidden_units", "num_buckets", "num_class")
NOT_OF_TENSORS = ("model_config.losses", "model_config.metrics", "model_config.train_metrics")
"""Keys beside the tensors of a model."""
CHECKPOINT_FORMS = "a checkpoint (RUN/checkpoints/step-100), a run (RUN), or the best of a run (RUN/best)"


def best_metric(export: ExportConfig) -> BestMetric:
    """What makes a checkpoint the best; a direction that is not written is that of the metric's name."""
    written = "metric_larger_is_better" in export.model_fields_set
    return BestMetric(export.best_exporter_metric, export.metric_larger_is_better if written else None)


def checkpoint_of_run(folder: ModelDir, word: str | None, export: ExportConfig) -> Checkpoint:
    """The latest or the best checkpoint of a run; by default the one that it ended with, perhaps by early stopping."""
    folder.require_checkpoints()
    store = CheckpointStore(folder.checkpoints)
    if word == "best":
        return store.open(require_best_step(folder.evaluations.read(), best_metric(export), str(folder.path)))
    marked = marked_step(folder.path) if word is None else None
    if marked is not None and marked in store.steps():
        return store.open(marked)
    return store.require_latest()


def checkpoint_at(path: Path, key: str) -> Checkpoint:
    """The checkpoint that a path means; where it means none, `key` is the setting that the error speaks of."""
    folder, word = _run_and_word(path)
    if folder is not None:  # what the best of another run is, its own run.yaml says
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
    elif str(path) in CHECKPOINT_WORDS:
        problem = f"'{path}' does not say of which run"
    raise CheckpointError(f"{key}: {problem}; give {CHECKPOINT_FORMS}")


def _run_and_word(path: Path) -> tuple[ModelDir | None, str | None]:
    """The run that a path names, and the word behind it; its folder of checkpoints stands for the run."""
    word = path.name if path.name in CHECKPOINT_WORDS and not path.exists() else None
    run = path.parent if word else path
    run = run.parent if run.name == "checkpoints" else run
    folder = ModelDir(run)
    return (folder, word) if folder.checkpoints.is_dir() else (None, None)


def open_scoring(
    run: RunConfig, which: str | None, session: Session, batch: LargestBatch
) -> tuple[ShardedModel, Checkpoint, MemoryBudget]:
    """A model with the parameters of a checkpoint and without optimizers, and the budget it was counted in.

    `batch` is the largest that it will score.
    """
    monitor = session.monitor
    with monitor.stage("build"):
        checkpoint = find_checkpoint(run, which)
        require_same_meaning(checkpoint, run)
        features, data = build_parser(run, with_labels=False).features, run.data_config
        labels, weights = data.label_fields, data.sample_weight_fields
        model = build_model(model_section(run), features, labels, weights, table_device="meta")
        step = step_use(model, batch, training=False)
        budget = share_model(limit_of(run.memory), session.settled_bytes(), model, [step])
        monitor.leased_bytes = lambda: budget.held_bytes
        module = shard(TrainWrapper(model), None, session.world)
        with named_difference(checkpoint, run):
            load_whole_model(checkpoint, module)
        if scores_by_averages(run):
            load_averages(checkpoint, module)
    return ShardedModel(module, model, compute_device(session.world)), checkpoint, budget


def find_checkpoint(run: RunConfig, which: str | None) -> Checkpoint:
    """The latest checkpoint, the best, or the one that a path means; every byte of it is checked."""
    folder = ModelDir(Path(run.model_dir))
    if which is None or which in CHECKPOINT_WORDS:
        return checkpoint_of_run(folder, which, run.export_config)
    if Path(which).exists() or _run_and_word(Path(which))[0] is not None:
        return checkpoint_at(Path(which), "--checkpoint_path")
    folder.require_checkpoints()
    store = CheckpointStore(folder.checkpoints)
    known = {f"step-{step}": step for step in store.steps()}
    if which not in known:
        raise CheckpointError(
            f"--checkpoint_path: there is no checkpoint '{which}'; {hint(which, [*CHECKPOINT_WORDS, *known])}"
        )
    return store.open(known[which])


def checkpoint_to_continue(run: RunConfig, store: CheckpointStore, new_data: bool) -> Checkpoint | None:
    """The newest whole checkpoint, if the run may go on from it; without one, None and a warning."""
    checkpoint = store.latest()
    if checkpoint is None:
        logger.warning("no whole checkpoint in %s; starting at step 0", store.directory)
        return None
    require_same_meaning(checkpoint, run)
    is_shuffled = bool(checkpoint.documents["shuffle"]["num_rows"])
    if not new_data and is_shuffled != run.data_config.shuffle:
        was, setting = ("with", "true") if is_shuffled else ("without", "false")
        raise CheckpointError(
            f"{checkpoint.path}: was trained {was} shuffling, which cannot change on the way; "
            f"set data_config.shuffle: {setting}"
        )
    return checkpoint


def continue_run(
    run: RunConfig,
    training: Training,
    checkpoint: Checkpoint,
    checkpoints: RunCheckpoints,
    folder: ModelDir,
    *,
    restore_optimizer: bool = True,
    new_data: bool = False,
) -> None:
    """Go on from a checkpoint of the run.

    With `new_data` everything comes back but the position in the data, and what early stopping saw: these are begun,
    and num_steps and num_epochs count from there.
    """
    # Rates that were learned belong to the optimizers; evaluations on other data do not count for these.
    without = {*(() if restore_optimizer else ("rates",)), *(("early_stopping",) if new_data else ())}
    with named_difference(checkpoint, run):
        checkpoints.restore(checkpoint, training.progress, optimizer=restore_optimizer, without=without)
    if new_data:
        _warn_of_old_data(checkpoint, training)
        training.progress.move_to_new_data()
        training.batches.set_epoch(training.progress.epoch)
    else:
        states, plan = checkpoint.documents["position"], training.plan
        training.batches.load_state_dict(resumed_state(states, plan.source, plan.budget, training.shard))
    for journal in (folder.log, folder.evaluations):
        journal.cut_back(checkpoint.step)
    checkpoints.remove_stale()
    logger.info("continuing from %s", checkpoint.path)
    _report_other_settings(checkpoint, run, folder, new_data)


def fine_tune(run: RunConfig, training: Training, path: str, map_file: str | None) -> None:
    """Start from another run's model at step 0; what only one of them has is listed."""
    checkpoint = checkpoint_at(Path(path), "train_config.fine_tune_checkpoint")
    logger.info("fine-tuning from %s", checkpoint.path)
    if problem := other_meaning(checkpoint, run):  # which fine-tuning learns
        logger.warning("fine-tuning from %s", problem)
    difference = load_renamed(checkpoint, training.sharded.module, map_file)
    if difference:
        logger.warning("fine-tuning from %s: %s", checkpoint.path, difference)


@contextmanager
def named_difference(checkpoint: Checkpoint, run: RunConfig) -> Iterator[None]:
    """Where tensors do not fit the model, name the first setting by which the run that wrote them differs.

    Another model is refused before: its tensors may have the same names and shapes.
    """
    folder = ModelDir(checkpoint.path.parent.parent)
    before = folder.written_config() if checkpoint.path.parent == folder.checkpoints else {}
    now = yaml.safe_load(dump_yaml(run))
    cure = f"set it back (as in {folder.run_file}), or train anew with another --model_dir"
    was, has = model_name(before), model_name(now)
    if was not in (None, has):
        raise CheckpointError(f"{checkpoint.path}: was trained as {was}, the run file has {has}; {cure}")
    try:
        yield
    except TensorMismatch as mismatch:
        found = [
            each
            for each in differences([before, now] if before else [now])
            if each.key.startswith(("feature_configs", "model_config"))
            and not each.key.startswith(NOT_OF_TENSORS)
        ]
        if not found:
            raise
        # Sizes decide shapes; a dropout that was changed beside them does not.
        first, *others = sorted(found, key=lambda each: not each.key.endswith(SIZES))
        was, has = first.values
        what = f"without {first.key}" if was is None else f"with {first.key} {was}"
        what += f", the run file has {'none' if has is None else has}"
        more = f" ({counted(len(others), 'more setting differs', 'more settings differ')})" if others else ""
        raise CheckpointError(f"{checkpoint.path}: was trained {what}{more}; {cure}") from mismatch


def _warn_of_old_data(checkpoint: Checkpoint, training: Training) -> None:
    saved, present = checkpoint.documents["position"][0], training.batches.state_dict()
    if saved["order"]["files"] != [list(file) for file in present["order"]["files"]]:
        return
    case = "the files are those of before, which were read to their end; they are trained again"
    if 0 < training.progress.epoch_steps != training.plan.source.num_batches():
        case = (
            "the run stopped in the middle of these files, which are now read from their first row again; "
            "--continue_train would go on where it stopped"
        )
    logger.warning("--new_data: %s", case)


def _report_other_settings(checkpoint: Checkpoint, run: RunConfig, folder: ModelDir, new_data: bool) -> None:
    """Say what is set otherwise than in the run before, and that another model to start from comes too late."""
    before, now = folder.written_config(), yaml.safe_load(dump_yaml(run))
    changed = changed_settings(before, now, new_data)
    if changed is not None:
        logger.info("continuing with %s", changed)
    start = train_section(run).fine_tune_checkpoint
    if start and start != dict(flattened(before)).get("train_config.fine_tune_checkpoint"):
        logger.warning(
            "--fine_tune_checkpoint: '%s' is not taken, since the run goes on from %s; "
            "to start from it, choose another --model_dir",
            start,
            checkpoint.path,
        )


def load_renamed(checkpoint: Checkpoint, model: torch.nn.Module, map_file: str | None) -> TensorDifference:
    """Bring a model to the parameters of a checkpoint, each from the one that the file names, else from its own name.

    Gives what only one side has. Another shape is an error that names both.
    """
    if not map_file:
        return load_model_state(checkpoint, model)
    state = model_state(model)
    stored = {name for name in checkpoint.tensors if name.startswith(_MODEL_PREFIX)}
    old_of = read_param_map(Path(map_file), list(state), sorted(stored))
    shapes = describe({name: state[name] for name in old_of})
    for name, old in old_of.items():
        own, other = tuple(shapes[name].shape), tuple(checkpoint.tensors[old].shape)
        if own != other:
            raise CheckpointError(
                f"{checkpoint.path}: '{name}' is {list(own)} but '{old}', which it is to start from, is {list(other)}"
            )
        checkpoint.load_tensors({old: state[name]}, strict=False)
    same = {name for name in state if name not in old_of}
    checkpoint.load_tensors({name: state[name] for name in same}, strict=False)
    extra = stored - same - set(old_of.values())
    return TensorDifference(missing=tuple(sorted(same - stored)), extra=tuple(sorted(extra)))


def read_param_map(path: Path, current: list[str], old: list[str]) -> dict[str, str]:
    """The lines `current old` of a file; empty ones and those that begin with # are passed over.

    Names are those of `penstock inspect CHECKPOINT`; the `model.` they all begin with may be left out.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.at(PARAM_MAP_KEY, f"'{path}' cannot be read ({error})") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise ConfigError.at(
                PARAM_MAP_KEY, f"{path}, line {number}: has {len(words)} words; write 'current old'"
            )
        names = []
        for word, known, side in zip(words, (current, old), ("model", "checkpoint"), strict=True):
            if word not in known and _MODEL_PREFIX + word not in known:
                problem = f"the {side} has no parameter '{word}'; {hint(_MODEL_PREFIX + word, known)}"
                raise ConfigError.at(PARAM_MAP_KEY, f"{path}, line {number}: {problem}")
            names.append(word if word in known else _MODEL_PREFIX + word)
        if names[0] in found:
            raise ConfigError.at(PARAM_MAP_KEY, f"{path}, line {number}: '{words[0]}' is there already")
        found[names[0]] = names[1]
    return found
