"""How the arrays of files are called as columns.

A `.npy` file is a column of its own name, the members of an `.npz` bear theirs. In a store that `penstock merge` wrote,
labels and masks of a head have the same name in their files, and every name of a file ends in its split. Columns of a
store are called as in its batch files, whatever the split: `strategic_features`, `labels_{head}`, `masks_{head}`.
"""

import json
import os
from collections.abc import Mapping

from penstock.config.errors import DataError
from penstock.readers.arrays.npy import StoredArray, read_npy
from penstock.readers.arrays.npz import read_npz
from penstock.readers.files import DataFile
from penstock.readers.splits import SplitFile, manifest_path
from penstock.readers.storage import open_input
from penstock.readers.uris import is_uri
from penstock.store.schema import ArrayNames


class ColumnNames:
    """Knows which folders are stores: each manifest is looked at once."""

    def __init__(self) -> None:
        self._names: dict[str, ArrayNames | None] = {}

    def part_of(self, file: DataFile) -> tuple[str, str]:
        """What a file belongs to: a split of a store, or a folder."""
        found = self._in_store(file)
        return (found[0].folder, found[0].split) if found else (folder_of(file.path), "")

    def columns(self, file: DataFile) -> dict[str, StoredArray]:
        """The arrays of a file by the names of their columns."""
        stem = os.path.splitext(file.name)[0]
        arrays = read_npz(file) if file.suffix == ".npz" else {stem: read_npy(file)}
        found = self._in_store(file)
        if found is None:
            return arrays
        place, names = found
        if place.role == "X":
            return {names.features if name == stem else name: array for name, array in arrays.items()}
        prefix = names.labels if place.role == "labels" else names.masks
        return {prefix + name: array for name, array in arrays.items()}

    def _in_store(self, file: DataFile) -> tuple[SplitFile, ArrayNames] | None:
        place = SplitFile.of(file.path)
        if place is None:
            return None
        if place.folder not in self._names:
            self._names[place.folder] = _read_names(manifest_path(file.path, place.folder))
        names = self._names[place.folder]
        return None if names is None else (place, names)


def folder_of(path: str) -> str:
    """The folder that a file lies in, without the options of a URI."""
    return os.path.dirname(path.partition("?")[0] if is_uri(path) else path) or "."


def _read_names(manifest: str) -> ArrayNames | None:
    """How a store calls its arrays; None where there is no manifest, or another program's."""
    try:
        with open_input(manifest) as source:
            document = json.loads(source.read())
    except (DataError, ValueError):
        return None
    schema = document.get("schema") if isinstance(document, Mapping) else None
    names = schema.get("names") if isinstance(schema, Mapping) else None
    if not isinstance(names, Mapping):
        return None
    try:
        return ArrayNames(**names)
    except TypeError as error:
        raise DataError(
            f"{manifest}: was written by another version of Penstock; merge the store again"
        ) from error
