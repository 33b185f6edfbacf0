"""fine_tune_ckpt_param_map: parameters that were called otherwise in the checkpoint one starts from."""

from collections.abc import Mapping
from pathlib import Path

import torch

from penstock.checkpoint import Checkpoint, Difference
from penstock.checkpoint.storage import describe
from penstock.config.errors import CheckpointError, ConfigError
from penstock.config.nearest import hint
from penstock.distributed.state import load_model_state, model_state

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
