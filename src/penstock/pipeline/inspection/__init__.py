"""What is in data, batch files, a store, a checkpoint or a run: facts, one table, and warnings that say what to do.

`inspect` finds out what a path is and asks the module that knows about it. Looking at data does not import torch.
"""

from pathlib import Path

from penstock.config.errors import DataError
from penstock.config.syntax import SYNTAX_OF_SUFFIX
from penstock.pipeline.inspection.data import DataLook, inspect_data
from penstock.pipeline.inspection.report import Inspection
from penstock.pipeline.inspection.stored import inspect_stored
from penstock.readers.files import TYPE_OF_SUFFIX

__all__ = ["DataLook", "Inspection", "inspect", "inspect_data"]

RUN_FILE_SUFFIXES = frozenset(SYNTAX_OF_SUFFIX) - frozenset(TYPE_OF_SUFFIX)


def inspect(path: str | Path, look: DataLook | None = None) -> Inspection:
    """Look at a path and tell what it is; `look` says how to look at data, and with a dataset type that it is data."""
    place = Path(path)
    if (place / "manifest.json").exists() and place.name.startswith("step-"):
        from penstock.pipeline.inspection.checkpoints import inspect_checkpoint

        return inspect_checkpoint(place)
    if (place / "run.yaml").exists():
        from penstock.pipeline.inspection.checkpoints import inspect_run

        return inspect_run(place)
    if place.is_file() and place.suffix in RUN_FILE_SUFFIXES:
        raise DataError(f"{path}: is a run file, not data; look at it with penstock check")
    look = look or DataLook()
    stored = None if look.reading.get("dataset_type") else inspect_stored(place, look)
    return stored or inspect_data(str(path), look)
