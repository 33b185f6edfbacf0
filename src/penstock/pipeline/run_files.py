"""Reading a run file: text, then the command line's say, then every check at once."""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError
from penstock.config.load import load_section
from penstock.config.notices import Notices
from penstock.pipeline.run_config import RunConfig

logger = logging.getLogger(__name__)

Edits = Mapping[str, Any] | Sequence[str]


def load_run(path: str | Path, edits: Edits | None = None) -> RunConfig:
    """Read, edit and check a run file. `edits` maps paths to values, or lists 'PATH=VALUE'.

    Raises a ConfigError that holds every problem of the file.
    """
    return load_section(
        RunConfig, Path(path), edits=[edits] if isinstance(edits, str) else edits or ()
    ).section


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
    """Say once which keys are old and which have no effect."""
    for line in found.lines():
        logger.warning("%s", line)
