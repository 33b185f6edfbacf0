"""The folder in which a store grows, out of sight, until it is whole.

    output_dir/.merging-<name>/   files at their full size, journal.jsonl; manifest.json when all is written
    output_dir/                          files are moved here, manifest.json last

The name tells inputs and options apart: a merge of the same goes on with what is there, another one removes it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.config.errors import ConfigError, DataError
from penstock.runtime.durable import sync_path
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.document import read_store

_PREFIX = ".merging-"
_REPLACED_NAME = "replaced.json"


@contextmanager
def locked(output_dir: Path) -> Iterator[None]:
    """Held by this process until it ends, however it ends."""
    output_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(output_dir, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"{output_dir}: another merge is writing it; wait for it") from error
        yield
    finally:
        os.close(descriptor)


def staging_folder(output_dir: Path, name: str) -> Path:
    """Where a merge writes whose inputs, options and pieces of work have that name."""
    return output_dir / f"{_PREFIX}{name}"


def check_ended(output_dir: Path) -> None:
    """Refuse a folder in which a merge has left or still has what is no store yet."""
    if not (output_dir / MANIFEST_NAME).exists() and any(output_dir.glob(f"{_PREFIX}*")):
        raise DataError(
            f"{output_dir}: is no whole store: a merge was begun here and has not ended; run penstock merge, which "
            "goes on with it"
        )


def remove_others(output_dir: Path, kept: Path | None) -> None:
    """Remove what killed merges of other inputs or with other options left; where nothing is kept, of any.

    That is also what they had moved to its place already, and what was left of the store that they replaced. Where
    there is a whole store, all files beside it are its own: they had moved nothing yet, or everything.
    """
    has_store = (output_dir / MANIFEST_NAME).exists()
    for folder in output_dir.glob(f"{_PREFIX}*"):
        if folder != kept:
            if not has_store:
                _remove_moved(output_dir, folder)
            shutil.rmtree(folder)


def _remove_moved(output_dir: Path, staging: Path) -> None:
    if (staging / MANIFEST_NAME).exists():
        moved = [name for name in _file_names(staging) if not (staging / name).exists()]
        _remove(output_dir, moved)
    if (staging / _REPLACED_NAME).exists():
        _remove(output_dir, _file_names(staging, _REPLACED_NAME))


def remove_leftovers(output_dir: Path) -> None:
    """Remove what merges left beside a whole store; nothing as long as one is at work, or where nobody may write."""
    if any(output_dir.glob(f"{_PREFIX}*")):
        with suppress(ConfigError, OSError), locked(output_dir):
            remove_others(output_dir, None)


def check_free(output_dir: Path, names: Iterable[str], staging: Path | None = None) -> None:
    """Refuse to replace what is there while no manifest says that a merge has written it; all is told at once."""
    if (output_dir / MANIFEST_NAME).exists() or (staging and (staging / MANIFEST_NAME).exists()):
        return
    found = [name for name in names if (output_dir / name).exists()]
    if found:
        what, them = (f"{found[0]} is", "it") if len(found) == 1 else (_and_more(found), "them")
        raise ConfigError(
            f"{output_dir}: {what} there without a {MANIFEST_NAME}, and so no merge replaces {them}; remove or move "
            f"{them}, or choose another output_dir"
        )


def _and_more(names: list[str]) -> str:
    return f"{names[0]} and {len(names) - 1:,} more are"


def put_in_place(staging: Path, output_dir: Path, durable: bool) -> None:
    """Move a finished store to where it belongs, in steps that a kill may interrupt anywhere.

    What was there stops being a store before its first file goes, and the new one is a store when its last has come.
    """
    names = _file_names(staging)
    old, replaced = output_dir / MANIFEST_NAME, staging / _REPLACED_NAME
    if old.exists():
        old.rename(replaced)
        _sync([output_dir], durable)
    for name in names:
        if (staging / name).exists():
            (output_dir / name).parent.mkdir(exist_ok=True)
            (staging / name).rename(output_dir / name)
    if replaced.exists():
        _remove(output_dir, sorted(set(_file_names(staging, _REPLACED_NAME)) - set(names)))
    _sync({(output_dir / name).parent for name in names}, durable)
    (staging / MANIFEST_NAME).rename(old)
    _sync([output_dir], durable)
    shutil.rmtree(staging)


def _file_names(folder: Path, name: str = MANIFEST_NAME) -> list[str]:
    """The files that a manifest lists."""
    return [item["name"] for item in read_store(folder, name)["files"]]


def _sync(folders: Iterable[Path], durable: bool) -> None:
    if durable:
        for folder in folders:
            sync_path(folder)


def _remove(output_dir: Path, names: list[str]) -> None:
    for name in names:
        path = output_dir / name
        path.unlink(missing_ok=True)
        if path.parent != output_dir and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()
