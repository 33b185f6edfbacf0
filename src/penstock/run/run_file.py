"""Reading a run file: text, then the command line's say, then every check at once."""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError
from penstock.config.load import load_section
from penstock.config.write import dump_text
from penstock.run.run_config import RunConfig
from penstock.runtime.world import tile_from_environment
from penstock.training.model_dir import ModelDir

logger = logging.getLogger(__name__)

Edits = Mapping[str, Any] | Sequence[str]


def load_run(path: str | Path, edits: Edits | None = None) -> RunConfig:
    """Read, edit and check a run file. `edits` maps paths to values, or lists 'PATH=VALUE'.

    Raises a ConfigError that holds every problem of the file.
    """
    if not isinstance(path, str | Path):
        raise ConfigError(f"load_run: expected the path of a run file, not {path!r}")
    if not isinstance(edits, Mapping | Sequence | None):
        raise ConfigError(
            f"load_run: edits are a mapping of paths to values or a list of 'PATH=VALUE', not {edits!r}"
        )
    texts = [edits] if isinstance(edits, str) else edits or ()
    given = [*texts.items()] if isinstance(texts, Mapping) else [*texts]
    return load_section(RunConfig, Path(path), edits=[*_environment_edits(), *given]).section


def load_run_of_command(
    path: Path,
    options: Mapping[str, str | None],
    sets: Sequence[str] | None = None,
    edit_json: str | None = None,
    strict: bool = False,
) -> RunConfig:
    """A run file as the command line wants it: options that are keys first, then edits in the order given.

    Keys that are old or have no effect are warned of.
    """
    given = [(key, value) for key, value in options.items() if value is not None]
    edits: list[str | tuple[str, Any]] = [*_environment_edits(), *given, *(sets or ())]
    if edit_json is not None:
        try:
            found = json.loads(edit_json)
        except json.JSONDecodeError as error:
            raise ConfigError(f"--edit_config_json: is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise ConfigError("--edit_config_json: expected one JSON object of path: value")
        edits += found.items()
    loaded = load_section(RunConfig, path, edits=edits, strict=strict)
    for line in loaded.notices.lines():
        logger.warning("%s", line)
    return loaded.section


def _environment_edits() -> list[tuple[str, Any]]:
    """What the environment says in an old way, as edits, with a warning that names the key."""
    tile = tile_from_environment()
    if tile is None:
        return []
    logger.warning("INPUT_TILE in the environment: use data_config.input_tile: %s instead", tile)
    return [("data_config.input_tile", tile)]


def write_text_config(run: RunConfig) -> None:
    """The final config of a run as protobuf text, beside its run.yaml."""
    folder = ModelDir(Path(run.model_dir))
    folder.write_text(folder.path / "run.config", dump_text(run))
