"""Which run a run is compared with: the one of the same model on the same data that was made before it."""

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.models.sections.model import ModelConfig
from penstock.observe.report.run_record import RunRecord, read_run
from penstock.training.model_dir import ModelDir


def previous_run(run: RunRecord) -> RunRecord | None:
    """The newest earlier run of the same model on the same training data in a folder beside this one; None without any.

    A run is earlier if it began before this one, whichever of them was continued since.
    """
    own = ModelDir(run.path.resolve())
    if not own.run_file.exists():
        return None
    for folder in _earlier_runs(own):
        is_alike = _compared_by(folder.written_config()) == _compared_by(run.config)
        if is_alike and folder.log.read():
            return read_run(folder.path)
    return None


def model_name(config: Mapping[str, Any]) -> str | None:
    """The model that a run file chooses; None where it chooses none."""
    section = config.get("model_config") or {}
    return next((name for name in ModelConfig.one_of["model"] if name in section), None)


def _compared_by(config: Mapping[str, Any]) -> tuple[Any, ...]:
    return model_name(config), config.get("train_input_path")


def _earlier_runs(own: ModelDir) -> Iterator[ModelDir]:
    """Folders beside that of a run whose own run began before it, the newest first."""
    began = _began_at(own)
    beside = [ModelDir(file.parent) for file in own.path.parent.glob("*/run.yaml")]
    for folder in sorted(beside, key=_began_at, reverse=True):
        if _began_at(folder) < began and folder != own:
            yield folder


def _began_at(folder: ModelDir) -> float:
    """When a run began; of one that does not say so, when its run file was written."""
    began = folder.started_at
    return folder.run_file.stat().st_mtime if began is None else began
