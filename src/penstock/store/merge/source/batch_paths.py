"""Which batch files a folder has, in the order of their numbers."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import overload

from penstock.config.errors import DataError
from penstock.store.batch_file.files import SUFFIXES

_BEGINNING = "batch_"
_SUFFIXES = (*SUFFIXES.values(), ".npy", ".pkl", ".pickle")
"""Of files that are written today, and of old ones."""


class BatchPaths(Sequence[Path]):
    """Files of a folder. Only names are kept: a path is made when it is asked for, and takes eight times the memory."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder, self._names = folder, tuple(names)

    @overload
    def __getitem__(self, place: int) -> Path: ...

    @overload
    def __getitem__(self, place: slice) -> "BatchPaths": ...

    def __getitem__(self, place: int | slice) -> "Path | BatchPaths":
        if isinstance(place, slice):
            return BatchPaths(self._folder, self._names[place])
        return self._folder / self._names[place]

    def __len__(self) -> int:
        return len(self._names)


def list_batch_files(intermediate_dir: Path) -> BatchPaths:
    """The batch files of a folder in the order of their numbers; no number may be there twice.

    Where there are files called batch_*, all others are something else; else all that may be batch files are.
    """
    if not intermediate_dir.is_dir():
        raise DataError(f"{intermediate_dir}: is no folder; intermediate_dir is where batch files are")
    found = sorted(_names(intermediate_dir), key=natural_order)
    if not found:
        raise DataError(
            f"{intermediate_dir}: has no batch files, whose names end in {', '.join(_SUFFIXES)}; run penstock prep "
            "first"
        )
    names = [name for name in found if name.startswith(_BEGINNING)] or found
    for name, following in pairwise(names):
        if os.path.splitext(name)[0] == os.path.splitext(following)[0]:
            raise DataError(
                f"{intermediate_dir / following}: is also there as {name}; take away the one that is not to be merged"
            )
    return BatchPaths(intermediate_dir, names)


def _names(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and entry.name.endswith(_SUFFIXES) and entry.is_file():
                yield entry.name


def natural_order(name: str) -> str:
    """So that batch_9 comes before batch_10.

    >>> sorted(["batch_10.npz", "batch_9.npz"], key=natural_order)
    ['batch_9.npz', 'batch_10.npz']
    """
    return re.sub(r"\d+", lambda number: number[0].zfill(20), name)
