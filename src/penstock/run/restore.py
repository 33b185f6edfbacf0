"""From which checkpoint a command starts, if its features mean the same: to score, to go on, or to be fine-tuned."""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import yaml

from penstock.checkpoint import Checkpoint, CheckpointStore, TensorDifference
from penstock.checkpoint.manifest import MANIFEST_NAME
from penstock.checkpoint.storage import describe
from penstock.config.errors import CheckpointError, ConfigError, hint
from penstock.config.write import changed_settings, dump_yaml, flattened
from penstock.distributed.groups import compute_device
from penstock.distributed.sharding import shard
from penstock.distributed.state import load_averages, load_model_state, model_state
from penstock.export.sections import ExportConfig
from penstock.features.sections import FgMode, named_features
from penstock.models import build_model
from penstock.models.model import TrainWrapper
from penstock.run.data import build_parser, resumed_state
from penstock.run.requirements import model_section, scores_by_averages, train_section
from penstock.run.run_config import RunConfig, load_run
from penstock.run.session import Session
from penstock.run.training import ShardedModel, Training, share_model
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import limit_of
from penstock.training.best import BestMetric, marked_step, require_best_step
from penstock.training.model_dir import ModelDir
from penstock.training.trainer import RunCheckpoints, load_whole_model

logger = logging.getLogger(__name__)

KEY = "train_config.fine_tune_ckpt_param_map"
WORDS = ("latest", "best")
_MODEL = "model."
FORMS = "a checkpoint (RUN/checkpoints/step-100), a run (RUN), or the best of a run (RUN/best)"


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


def open_scoring(
    run: RunConfig, which: str | None, session: Session, batch_size: int
) -> tuple[ShardedModel, Checkpoint, MemoryBudget]:
    """A model with the parameters of a checkpoint and without optimizers, and the budget it was counted in."""
    monitor = session.monitor
    with monitor.stage("build"):
        checkpoint = find_checkpoint(run, which)
        require_same_meaning(checkpoint, run)
        features, data = build_parser(run, with_labels=False).features, run.data_config
        labels, weights = data.label_fields, data.sample_weight_fields
        model = build_model(model_section(run), features, labels, weights, table_device="meta")
        budget = share_model(limit_of(run.memory), monitor.sample(), model, None, batch_size)
        module = shard(TrainWrapper(model), None, session.world)
        load_whole_model(checkpoint, module)
        if scores_by_averages(run):
            load_averages(checkpoint, module)
    return ShardedModel(module, model, compute_device(session.world)), checkpoint, budget


def find_checkpoint(run: RunConfig, which: str | None) -> Checkpoint:
    """The latest checkpoint, the best, or the one that a path means; every byte of it is checked."""
    folder = ModelDir(Path(run.model_dir))
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
    stored = {name for name in checkpoint.tensors if name.startswith(_MODEL)}
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
        raise ConfigError.at(KEY, f"'{path}' cannot be read ({error})") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2:
            raise ConfigError.at(KEY, f"{path}, line {number}: has {len(words)} words; write 'current old'")
        names = []
        for word, known, side in zip(words, (current, old), ("model", "checkpoint"), strict=True):
            if word not in known and _MODEL + word not in known:
                problem = f"the {side} has no parameter '{word}'; {hint(_MODEL + word, known)}"
                raise ConfigError.at(KEY, f"{path}, line {number}: {problem}")
            names.append(word if word in known else _MODEL + word)
        if names[0] in found:
            raise ConfigError.at(KEY, f"{path}, line {number}: '{words[0]}' is there already")
        found[names[0]] = names[1]
    return found


# What the inputs of a model mean is everything that turns columns into the ids and numbers it was trained on. A
# checkpoint fits a run file by the shapes of its tensors long before it fits by meaning: another order of vocab_list
# gives every word another word's vector, and nothing would tell. So a checkpoint carries this description, and is used
# only where the run file gives the same.
DOCUMENT = "features"
"""The name of the description among the documents of a checkpoint."""

Meaning = dict[str, Any]

_WITHOUT_MEANING = frozenset(
    {
        "feature_name",  # the key of the description
        "init_fn",
        "trainable",
        "embedding_constraints",
        "num_buckets",  # an id is its row; this and the next two show in the shapes and types of tensors
        "embedding_dim",
        "data_type",
    }
)
"""Options that change no id and no number. Every other option counts, also one that is added later."""

_TEXT_OPTIONS = (
    "expression separator default_value normalizer boundaries hash_bucket_size vocab_list vocab_dict vocab_file "
    "default_bucketize_value fg_value_type"
)
_UNUSED_IN_MODE: Mapping[FgMode, frozenset[str]] = {
    FgMode.FG_NONE: frozenset(_TEXT_OPTIONS.split()),
    FgMode.FG_NORMAL: frozenset({"fg_encoded_default_value"}),
}
"""Options that a mode does not read: with FG_NONE columns hold ids and numbers already."""

_EMPTY_IS_ABSENT = frozenset({"default_value", "fg_encoded_default_value", "normalizer", "value_dim"})
_MAX_SHOWN = 60


def feature_meaning(run: RunConfig) -> Meaning:
    """The description, as plain values; a default that is written and one that is left out are the same."""
    data, groups = run.data_config, model_section(run).feature_groups
    used = {name for group in groups for name in group.feature_names}
    mode = data.resolved_fg_mode()
    excluded = {*_WITHOUT_MEANING, *_UNUSED_IN_MODE.get(mode, ())}
    features: Meaning = {}
    for named in named_features(run.feature_configs):
        if named.name in used:
            options = named.section.model_dump(mode="json", exclude=excluded)
            for name in _EMPTY_IS_ABSENT & options.keys():
                options[name] = options[name] or None
            if "embedding_name" in options:
                options["embedding_name"] = options["embedding_name"] or f"{named.section.feature_name}_emb"
            features[named.name] = {"kind": named.key[2], **options}
    meaning: Meaning = {
        "fg_mode": mode.value,
        "features": features,
        "feature_groups": {
            group.group_name: group.model_dump(mode="json", exclude={"group_name"}) for group in groups
        },
    }
    if mode is FgMode.FG_NONE:
        meaning["fg_encoded_multival_sep"] = data.fg_encoded_multival_sep
    return meaning


def require_same_meaning(checkpoint: Checkpoint, run: RunConfig) -> None:
    """Refuse a checkpoint whose inputs meant something else than they do in this run file."""
    if problem := other_meaning(checkpoint, run):
        raise CheckpointError(f"{problem}; train again, or start from it with --fine_tune_checkpoint")


def other_meaning(checkpoint: Checkpoint, run: RunConfig) -> str | None:
    if DOCUMENT not in checkpoint.documents:
        return f"{checkpoint.path}: does not say what its features mean"
    difference = next(differences(checkpoint.documents[DOCUMENT], feature_meaning(run)), None)
    return f"{checkpoint.path}: {difference}" if difference else None


def differences(saved: Meaning, current: Meaning) -> Iterator[str]:
    for key in ("fg_mode", "fg_encoded_multival_sep"):
        yield from _in_value(f"data_config.{key}", saved.get(key), current.get(key))
    for kind, key in (("feature", "features"), ("feature group", "feature_groups")):
        before, now = saved[key], current[key]
        for name in dict.fromkeys([*before, *now]):
            if name not in now:
                yield f"{kind} '{name}' is in the checkpoint, but not in this run file"
                continue
            if name not in before:
                yield f"{kind} '{name}' is in this run file, but not in the checkpoint"
                continue
            # The kind of a feature comes first: other differences follow from it.
            for option in sorted({*before[name], *now[name]}, key=lambda option: (option != "kind", option)):
                path = f"{kind} '{name}': {option}"
                yield from _in_value(path, before[name].get(option), now[name].get(option))


def _in_value(path: str, saved: Any, current: Any) -> Iterator[str]:
    """Differences of one value, named down to the item of a list; long values cut to where they begin to differ."""
    if saved == current:
        return
    if isinstance(saved, dict) and isinstance(current, dict):
        for key in sorted(saved.keys() | current.keys()):
            yield from _in_value(f"{path}['{key}']", saved.get(key), current.get(key))
    elif isinstance(saved, list) and isinstance(current, list) and saved and current:
        if len(saved) != len(current):
            yield f"{path} has another length: {len(saved)} in the checkpoint, {len(current)} in this run file"
        for index, (before, now) in enumerate(zip(saved, current, strict=False)):
            yield from _in_value(f"{path}[{index}]", before, now)
    else:
        texts = [json.dumps(value, ensure_ascii=False) for value in (saved, current)]
        pairs = enumerate(zip(*texts, strict=False))
        first = next((index for index, (mine, other) in pairs if mine != other), 0)
        start = max(0, first - _MAX_SHOWN // 2)
        end = start + _MAX_SHOWN
        before, now = (
            text
            if len(text) <= _MAX_SHOWN
            else ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")
            for text in texts
        )
        yield f"{path} differs: {before} in the checkpoint, {now} in this run file"
