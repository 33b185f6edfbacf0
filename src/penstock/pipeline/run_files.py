"""Reading a run file: text, then the command line's say, then every check at once."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, Problem
from penstock.config.load import load_section
from penstock.config.notices import Notices, notices
from penstock.config.paths import format_path
from penstock.pipeline.run_config import ModelConfig, RunConfig, TrainConfig

Edits = Mapping[str, Any] | Sequence[str]


def load_run(path: str | Path, edits: Edits | None = None) -> RunConfig:
    """Read, edit and check a run file. `edits` maps paths to values, or lists 'PATH=VALUE'.

    Raises a ConfigError that holds every problem of the file.
    """
    return load_section(RunConfig, Path(path), edits=edits or ()).section


def load_run_with_notices(
    path: Path, paths: Mapping[str, str], sets: Sequence[str], edit_json: str | None, strict: bool
) -> tuple[RunConfig, Notices]:
    """A run file as the command line wants it: options that are paths first, then edits in the order given."""
    edits: list[tuple[str, Any]] = [*paths.items()]
    loaded = load_section(RunConfig, path, edits=[*edits, *sets, *read_edit_json(edit_json)], strict=strict)
    return loaded.section, loaded.notices


def read_edit_json(text: str | None) -> list[tuple[str, Any]]:
    """The edits of --edit_config_json."""
    if text is None:
        return []
    try:
        edits = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"--edit_config_json: is not JSON: {error}") from error
    if not isinstance(edits, dict):
        raise ConfigError("--edit_config_json: expected one JSON object of path: value")
    return list(edits.items())


def tell(found: Notices) -> None:
    """Say once, on stderr, which keys are old and which have no effect."""
    for line in found.lines():
        print(f"warning: {line}", file=sys.stderr)


def require_available(run: RunConfig) -> None:
    """Refuse what this version checks but cannot do yet, all of it at once."""
    later = [notice for notice in notices(run).later if not notice.harmless]
    if later:
        raise ConfigError([Problem(format_path(notice.path), notice.text) for notice in later])


def model_section(run: RunConfig) -> ModelConfig:
    """The model of a run; a command that needs one says so."""
    if run.model is None:
        raise ConfigError.at("model_config", "is required by this command")
    return run.model


def train_section(run: RunConfig) -> TrainConfig:
    """How a run trains; a command that needs it says so."""
    if run.train_config is None:
        raise ConfigError.at("train_config", "is required by this command")
    return run.train_config
