"""Which run a run is compared with: the one of the same model on the same data that was made before it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.models.sections import ModelConfig
from penstock.pipeline.model_dir import ModelDir
from penstock.pipeline.report.run_record import RunRecord, read_run
from penstock.pipeline.run_files import written_config


def previous_run(run: RunRecord) -> RunRecord | None:
    """The newest earlier run of the same model on the same training data in a folder beside this one; None without any.

    A run is earlier if its run.yaml was written before this one's.
    """
    own_file = ModelDir(run.path).run_file
    if not own_file.exists():
        return None
    for folder in _earlier_runs(own_file.resolve()):
        is_alike = _compared_by(written_config(ModelDir(folder))) == _compared_by(run.config)
        if is_alike and ModelDir(folder).log.read():
            return read_run(folder)
    return None


def model_name(config: Mapping[str, Any]) -> str | None:
    """The model that a run file chooses; None where it chooses none."""
    section = config.get("model_config") or {}
    return next((name for name in ModelConfig.one_of["model"] if name in section), None)


def _compared_by(config: Mapping[str, Any]) -> tuple[Any, ...]:
    return model_name(config), config.get("train_input_path")


def _earlier_runs(own_file: Path) -> Iterator[Path]:
    """Folders beside that of a run file whose own run file is older, the newest first."""
    written_at = own_file.stat().st_mtime_ns
    beside = [(file.stat().st_mtime_ns, file.parent) for file in own_file.parent.parent.glob("*/run.yaml")]
    for stamp, folder in sorted(beside, reverse=True):
        if stamp < written_at and folder != own_file.parent:
            yield folder
