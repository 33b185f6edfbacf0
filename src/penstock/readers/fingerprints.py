"""Noticing that a saved position was made with other files or in another order."""

import os
from collections.abc import Sequence

from penstock.config.errors import CheckpointError
from penstock.readers.files import DataFile

Fingerprint = tuple[str, int, int | None]
"""A file's name without its folder (data sets may move), its size in bytes, its rows where they are known."""


def fingerprint(file: DataFile, num_rows: int | None) -> Fingerprint:
    """What a position remembers of a file."""
    return os.path.basename(file.path), file.size_bytes, num_rows


def check_same_files(
    saved: Sequence[Sequence[object]], present: Sequence[Fingerprint], files: Sequence[DataFile]
) -> None:
    """Refuse a position that was saved with other files, naming the first that differs."""
    for old, new, file in zip(saved, present, files, strict=False):
        if tuple(old) != new:
            raise CheckpointError(
                f"{file.path}: is not the file that the position was saved with (was {_describe(old)}; "
                f"is {_describe(new)}); put that file back, or start anew"
            )
    if len(saved) != len(present):
        raise CheckpointError(
            f"the position was saved with {len(saved)} files but there are {len(present)} now; "
            "put the same files back, or start anew"
        )


def check_same_seed(saved: int | None, present: int | None) -> None:
    """Refuse a position in another order of blocks."""
    if saved != present:
        raise CheckpointError(
            f"the position was saved with {_describe_order(saved)} but the run has "
            f"{_describe_order(present)}; "
            "set data_config.shuffle and data_config.seed as they were, or start anew"
        )


def _describe_order(seed: int | None) -> str:
    return "no shuffle" if seed is None else f"shuffle seed {seed}"


def _describe(mark: Sequence[object]) -> str:
    name, size_bytes, num_rows = mark
    rows = "" if num_rows is None else f", {num_rows} rows"
    return f"{name}, {size_bytes} bytes{rows}"
