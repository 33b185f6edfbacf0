"""Everything of a run that a checkpoint holds, and how it comes back."""

import logging
from collections.abc import Mapping
from pathlib import Path

import torch
import yaml

from penstock.checkpoint import Checkpoint, CheckpointStore, Difference
from penstock.checkpoint.storage import describe
from penstock.config.errors import CheckpointError, ConfigError
from penstock.config.nearest import hint
from penstock.config.write import dump_yaml
from penstock.data.memory_plan import StageShares
from penstock.distributed.state import load_model_state, load_training_state, model_state, training_state
from penstock.run.best import best_step
from penstock.run.config_difference import changed_settings, flattened
from penstock.run.data import resumed_state
from penstock.run.feature_meaning import (
    DOCUMENT,
    feature_meaning,
    require_same_meaning,
    warn_of_other_meaning,
)
from penstock.run.model_dir import ModelDir
from penstock.run.requirements import train_section
from penstock.run.restore import checkpoint_at, load_whole_model
from penstock.run.run_config import RunConfig
from penstock.run.run_file import written_config
from penstock.run.training_parts import Training
from penstock.training.progress import TrainingProgress

logger = logging.getLogger(__name__)

KEY = "train_config.fine_tune_ckpt_param_map"
_MODEL = "model."


def load_renamed(checkpoint: Checkpoint, model: torch.nn.Module, map_file: str | None) -> Difference:
    """Bring a model to the parameters of a checkpoint, each from the one that the file names, else from its own name.

    Gives what only one side has. Another shape is an error that names both.
    """
    if not map_file:
        return load_model_state(checkpoint, model)
    state = model_state(model)
    stored = {name for name in checkpoint.names if name.startswith(_MODEL)}
    old_of = read_param_map(Path(map_file), list(state), sorted(stored))
    wanted = {name: old_of.get(name, name) for name in state}
    _require_same_shapes(checkpoint, state, old_of)
    _load_each(checkpoint, state, wanted)
    used = set(wanted.values())
    missing = tuple(sorted(name for name, old in wanted.items() if old not in stored))
    return Difference(missing=missing, extra=tuple(sorted(stored - used)))


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
        name = _known(words[0], current, f"{path}, line {number}: the model has no parameter")
        if name in found:
            raise ConfigError.at(KEY, f"{path}, line {number}: '{words[0]}' is there already")
        found[name] = _known(words[1], old, f"{path}, line {number}: the checkpoint has no parameter")
    return found


def _known(name: str, known: list[str], problem: str) -> str:
    for candidate in (name, _MODEL + name):
        if candidate in known:
            return candidate
    raise ConfigError.at(KEY, f"{problem} '{name}'; {hint(_MODEL + name, known)}")


def _require_same_shapes(
    checkpoint: Checkpoint, state: Mapping[str, torch.Tensor], old_of: Mapping[str, str]
) -> None:
    shapes = describe({name: state[name] for name in old_of})
    for name, old in old_of.items():
        own, stored = tuple(shapes[name].shape), tuple(checkpoint.tensors[old].shape)
        if own != stored:
            raise CheckpointError(
                f"{checkpoint.path}: '{name}' is {list(own)} but '{old}', which it is to start from, is {list(stored)}"
            )


def _load_each(checkpoint: Checkpoint, state: Mapping[str, torch.Tensor], wanted: Mapping[str, str]) -> None:
    """Load every parameter; one old parameter may start several new ones, each in a pass of its own."""
    left = dict(wanted)
    while left:
        by_old = {old: name for name, old in left.items()}
        checkpoint.load_tensors({old: state[name] for old, name in by_old.items()}, strict=False)
        for name in by_old.values():
            del left[name]


class Saver:
    """Saves and restores one training run."""

    def __init__(self, folder: ModelDir, training: Training, run: RunConfig) -> None:
        self.folder = folder
        self.store = CheckpointStore(folder.checkpoints, keep=train_section(run).keep_checkpoint_max)
        self.saved_step: int | None = None
        self._training, self._run = training, run
        self._meaning = feature_meaning(run)

    def save(self, progress: TrainingProgress) -> Path:
        """Write one checkpoint: whole, or absent."""
        training = self._training
        path = self.store.save(
            progress.step,
            training_state(training.sharded.module, training.dense_optimizer, training.sharded.averages),
            {
                "progress": progress.state_dict(),
                "position": [training.batches.state_dict()],
                "shuffle": {"num_rows": training.num_shuffle_rows},
                "generator": torch.get_rng_state().numpy(),
                DOCUMENT: self._meaning,
                **{name: part.state_dict() for name, part in training.resumables.items()},
            },
            protect=self._protected_steps(progress.step),
        )
        self.saved_step = progress.step
        return path

    def restore(self, restore_optimizer: bool = True, new_data: bool = False) -> None:
        """Go on from the newest whole checkpoint; without one, start at step 0 and say so.

        With `new_data` everything comes back but the place in the data, and what early stopping saw: these are begun,
        and num_steps and num_epochs count from there.
        """
        checkpoint = self.store.latest()
        if checkpoint is None:
            logger.warning("no whole checkpoint in %s; starting at step 0", self.folder.checkpoints)
            return
        training = self._training
        require_same_meaning(checkpoint, self._run)
        if not new_data:
            self._require_same_shuffle(checkpoint)
        if restore_optimizer:
            load_training_state(
                checkpoint, training.sharded.module, training.dense_optimizer, training.sharded.averages
            )
        else:
            load_whole_model(checkpoint, training.sharded.module)
        training.progress.load_state_dict(checkpoint.documents["progress"])
        # Rates that were learned belong to the optimizers; evaluations on other data do not count for these.
        begun_anew = [
            None if restore_optimizer else training.rates,
            training.early_stop if new_data else None,
        ]
        for name, part in training.resumables.items():
            if name in checkpoint.documents and not any(part is each for each in begun_anew):
                part.load_state_dict(checkpoint.documents[name])
        if new_data:
            self._tell_of_data_that_are_not_new(checkpoint)
            training.progress.move_to_new_data()
            training.batches.set_epoch(training.progress.epoch)
        else:
            self._restore_position(checkpoint)
        torch.set_rng_state(torch.from_numpy(checkpoint.documents["generator"]))
        self.saved_step = checkpoint.step
        for journal in (self.folder.log, self.folder.evaluations):
            journal.cut_back(checkpoint.step)
        self.store.remove_stale(self._protected_steps(checkpoint.step))
        logger.info("continuing from %s", checkpoint.path)
        self._tell_of_other_settings(checkpoint, new_data)

    def restore_parameters(self, step: int) -> None:
        """Bring the model, and nothing else, to where it was after a step that is saved."""
        load_whole_model(self.store.open(step), self._training.sharded.module)

    def fine_tune(self, path: str | None, param_map: str | None = None) -> None:
        """Start from another run's model, at step 0; what only one of them has is listed.

        `path` is that of a checkpoint, a run, or RUN/best; `param_map` is a file that says which of its parameters
        were called otherwise.
        """
        if not path:
            return
        checkpoint = checkpoint_at(Path(path), "train_config.fine_tune_checkpoint")
        logger.info("fine-tuning from %s", checkpoint.path)
        warn_of_other_meaning(checkpoint, self._run)
        difference = load_renamed(checkpoint, self._training.sharded.module, param_map)
        if difference:
            logger.warning("fine-tuning from %s: %s", checkpoint.path, difference)

    def _tell_of_other_settings(self, checkpoint: Checkpoint, new_data: bool) -> None:
        """Say what is set otherwise than in the run before, and that a model to start from comes too late.

        One that the run was begun with is no mistake: the same command starts a run and goes on with it.
        """
        before, now = written_config(self.folder), yaml.safe_load(dump_yaml(self._run))
        changed = changed_settings(before, now, new_data)
        if changed is not None:
            logger.info("continuing with %s", changed)
        start = train_section(self._run).fine_tune_checkpoint
        if start and start != dict(flattened(before)).get("train_config.fine_tune_checkpoint"):
            logger.warning(
                "--fine_tune_checkpoint: '%s' is not taken, since the run goes on from %s; "
                "to start from it, choose another --model_dir",
                start,
                checkpoint.path,
            )

    def _tell_of_data_that_are_not_new(self, checkpoint: Checkpoint) -> None:
        """Say so when these are the files of before: perhaps the run was only to go on, or others were meant."""
        training = self._training
        saved, present = checkpoint.documents["position"][0], training.batches.state_dict()
        if saved["order"]["files"] != [list(file) for file in present["order"]["files"]]:
            return
        num_batches = training.source.num_batches(self._run.data_config)
        if 0 < training.progress.epoch_steps != num_batches:
            logger.warning(
                "--new_data: the run stopped in the middle of these files, which are now read from their first row "
                "again; --continue_train would go on where it stopped"
            )
        else:
            logger.warning(
                "--new_data: the files are those of before, which were read to their end; they are trained again"
            )

    def _restore_position(self, checkpoint: Checkpoint) -> None:
        training, states = self._training, checkpoint.documents["position"]
        shares = StageShares.of(training.budget)
        training.batches.load_state_dict(resumed_state(states, training.source, shares, training.shard))

    def _protected_steps(self, newest: int) -> tuple[int, ...]:
        """The best steps before the newest, which stay though they are old; asked only where old ones go."""
        if not self.store.keep:
            return ()
        early_stop = self._training.early_stop
        before = (record for record in self.folder.evaluations.read() if record["step"] < newest)
        best = (
            best_step(before, self._run.export_config),
            None if early_stop is None else early_stop.best_step,
        )
        return tuple(step for step in best if step is not None)

    def _require_same_shuffle(self, checkpoint: Checkpoint) -> None:
        """The order of rows depends on the buffer's rows, so that another number could not continue it."""
        saved, current = checkpoint.documents["shuffle"]["num_rows"], self._training.num_shuffle_rows
        if bool(saved) != self._run.data_config.shuffle:
            was, setting = ("with", "true") if saved else ("without", "false")
            raise CheckpointError(
                f"{checkpoint.path}: was trained {was} shuffling, which cannot change on the way; "
                f"set data_config.shuffle: {setting}"
            )
        if saved != current:
            raise CheckpointError(
                f"{checkpoint.path}: was shuffled with a buffer of {saved:,} rows, this run with {current:,}"
            )


def saved_shuffle_rows(folder: ModelDir) -> int | None:
    """How many rows the shuffle buffer of a run has, 0 without shuffling; None before its first checkpoint.

    The number is decided once in the life of a run; a run that continues takes it from here.
    """
    document = CheckpointStore(folder.checkpoints).latest_document("shuffle")
    return None if document is None else int(document["num_rows"])
