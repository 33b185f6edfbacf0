"""The splits of an array store, told by the names of its files.

`penstock merge` writes `X_train.npy`, `labels_train.npz` and `masks_train.npz` (or folders `labels_train/` with a
`.npy` file for each head) beside a `manifest.json`. A glob such as `data/processed/*_train*` names a split of it.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.config.errors import DataError
from penstock.readers.uris import Uri, is_uri

MANIFEST_NAME = "manifest.json"
"""What makes a folder a store; written last, when everything else is there."""
SPLITS = ("train", "val", "test")
_HEADS_FOLDER = re.compile(rf".+_({'|'.join(SPLITS)})")
_FILE = re.compile(rf"{_HEADS_FOLDER.pattern}\.np[yz]")


@dataclass(frozen=True, slots=True)
class SplitFile:
    """A file that may belong to a store; whether it does, the manifest of the folder says."""

    folder: str
    """Of the store, without the options of a URI."""
    name: str
    """In this folder."""

    @classmethod
    def of(cls, path: str) -> "SplitFile | None":
        """None where neither the file nor the folder that it lies in is called like a part of a split.

        >>> SplitFile.of("data/X_train.npy")
        SplitFile(folder='data', name='X_train.npy')
        >>> SplitFile.of("data/labels_val/action.npy")
        SplitFile(folder='data', name='labels_val/action.npy')
        """
        folder, name = os.path.split(path.partition("?")[0] if is_uri(path) else path)
        if _FILE.fullmatch(name):
            return cls(folder or ".", name)
        folder, inner = os.path.split(folder)
        return cls(folder or ".", f"{inner}/{name}") if _HEADS_FOLDER.fullmatch(inner) else None


def manifest_path(path: str, folder: str) -> str:
    """Where the manifest of a folder lies; `path` is a file in it, whose connection it shares."""
    query = Uri.parse(path).query if is_uri(path) else ""
    return f"{folder}/{MANIFEST_NAME}{'?' if query else ''}{query}"


def head_folders(file_names: Iterable[str], folder_names: Iterable[str]) -> list[str]:
    """The folders of a store that hold more of its arrays, sorted; none where the folder is no store."""
    if MANIFEST_NAME not in file_names:
        return []
    return sorted(name for name in folder_names if _HEADS_FOLDER.fullmatch(name))


def check_one_split(folder: str, file_names: Iterable[str]) -> None:
    """Refuse a store with several splits where one is wanted: a model must not be trained on what it is judged by."""
    names = list(file_names)
    if MANIFEST_NAME not in names:
        return
    found = {match[1] for match in map(_FILE.fullmatch, names) if match}
    splits = [split for split in SPLITS if split in found]
    if len(splits) > 1:
        raise DataError(
            f"{folder}: is a store with the splits {', '.join(splits)}; name one of them, as "
            f"{folder.rstrip('/')}/*_{splits[0]}*"
        )
