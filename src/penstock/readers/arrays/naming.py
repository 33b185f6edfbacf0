"""How the arrays of files are called as columns.

A `.npy` file is a column of its own name, the members of an `.npz` bear theirs. In a store that `penstock merge` wrote,
labels and masks of a head have the same name in their files, and every name of a file ends in its split. Columns of a
store are called as in its batch files, whatever the split: `strategic_features`, `labels_{head}`, `masks_{head}`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import DataError
from penstock.readers.arrays.npy import StoredArray, read_npy
from penstock.readers.arrays.npz import read_npz
from penstock.readers.files import DataFile
from penstock.readers.splits import SplitFile, manifest_path
from penstock.readers.storage import open_input
from penstock.readers.uris import is_uri


@dataclass(frozen=True, slots=True)
class PartKey:
    """What files of one part have in common: a folder, and in a store the split."""

    folder: str
    split: str | None = None

    def __str__(self) -> str:
        return self.folder if self.split is None else f"{self.folder}/*_{self.split}*"


class ColumnNames:
    """Knows which folders are stores: each manifest is looked at once."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[Mapping[str, Any]]] = {}

    def part_of(self, file: DataFile) -> PartKey:
        """What a file belongs to."""
        arrays = self._arrays_in(file)
        place = SplitFile.of(file.path)
        return PartKey(place.folder, arrays[0]["split"]) if place and arrays else PartKey(_folder(file.path))

    def columns(self, file: DataFile) -> dict[str, StoredArray]:
        """The arrays of a file by the names of their columns."""
        stem = os.path.splitext(file.name)[0]
        arrays = read_npz(file) if file.suffix == ".npz" else {stem: read_npy(file)}
        names = {array["member"] or stem: array["name"] for array in self._arrays_in(file)}
        return {names.get(name, name): array for name, array in arrays.items()}

    def _arrays_in(self, file: DataFile) -> list[Mapping[str, Any]]:
        """What the manifest of a store says of a file; nothing of one that it does not list."""
        place = SplitFile.of(file.path)
        if place is None:
            return []
        if place.folder not in self._arrays:
            self._arrays[place.folder] = _listed_arrays(manifest_path(file.path, place.folder))
        return [array for array in self._arrays[place.folder] if array["file"] == place.name]


def _listed_arrays(manifest: str) -> list[Mapping[str, Any]]:
    """File, member, split and name of each array of a store; none where there is no manifest, or another program's."""
    try:
        with open_input(manifest) as source:
            document = json.loads(source.read())
    except (DataError, ValueError):
        return []
    arrays = document.get("arrays") if isinstance(document, Mapping) else None
    return [array for array in arrays if _is_listed(array)] if isinstance(arrays, list) else []


def _is_listed(array: Any) -> bool:
    return isinstance(array, Mapping) and {"file", "member", "split", "name"} <= array.keys()


def _folder(path: str) -> str:
    return os.path.dirname(path.partition("?")[0] if is_uri(path) else path) or "."
