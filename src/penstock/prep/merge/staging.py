"""The folder in which a store grows, out of sight, until it is whole; and the store that is there before.

    output_dir/.merging-<name>/   files at their full size, a marker for each task; manifest.json when all is written
    output_dir/                   files are moved here, manifest.json last

The name follows from inputs and options: a merge of the same goes on with what is there, another one removes it.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import format_size
from penstock.prep.merge.merge_options import MergeOptions
from penstock.prep.merge.plan import MergePlan
from penstock.readers.store_schema import MANIFEST_NAME, DamagedStore, StoreSchema, read_store
from penstock.runtime.durable import locked_folder, sync_path

_PREFIX = ".merging-"
_REPLACED_NAME = "replaced.json"
_OPTION_NAMES = {"level": "compression_level", "names": "names of arrays"}
"""As users know them, where that differs."""


def locked(output_dir: Path) -> AbstractContextManager[None]:
    output_dir.mkdir(parents=True, exist_ok=True)
    return locked_folder(output_dir, f"{output_dir}: another merge is writing it; wait for it")


def staging_folder(output_dir: Path, name: str) -> Path:
    return output_dir / f"{_PREFIX}{name}"


def check_ended(output_dir: Path) -> None:
    """Refuse a folder in which a merge has left or still has what is no store yet."""
    if not (output_dir / MANIFEST_NAME).exists() and any(output_dir.glob(f"{_PREFIX}*")):
        raise DataError(
            f"{output_dir}: is no whole store: a merge was begun here and has not ended; run penstock merge, which "
            "goes on with it"
        )


def check_free(output_dir: Path, names: Iterable[str], staging: Path | None = None) -> None:
    """Refuse to replace what is there while no manifest says that a merge has written it."""
    if (output_dir / MANIFEST_NAME).exists() or (staging and (staging / MANIFEST_NAME).exists()):
        return
    found = [name for name in names if (output_dir / name).exists()]
    if found:
        what, them = f"{found[0]} is", "it"
        if len(found) > 1:
            what, them = f"{found[0]} and {len(found) - 1:,} more are", "them"
        raise ConfigError(
            f"{output_dir}: {what} there without a {MANIFEST_NAME}, and so no merge replaces {them}; remove or move "
            f"{them}, or choose another output_dir"
        )


def check_space(output_dir: Path, needed_bytes: int, staging: Path) -> None:
    """Refuse to begin what cannot end; what a killed merge has written already needs no space again."""
    existing = output_dir.absolute()
    while not existing.exists():
        existing = existing.parent
    if not os.access(existing, os.W_OK):
        raise DataError(
            f"{output_dir}: cannot be written to: {existing} is read-only; choose another output_dir"
        )
    allocated = sum(path.stat().st_blocks * 512 for path in staging.rglob("*") if path.is_file())
    missing_bytes, free_bytes = needed_bytes - allocated, shutil.disk_usage(existing).free
    if missing_bytes > free_bytes:
        raise DataError(
            f"{output_dir}: the disk has {format_size(free_bytes)} free but the merge needs "
            f"{format_size(missing_bytes)}, {format_size(missing_bytes - free_bytes)} more; free some, or choose "
            "an output_dir on another disk"
        )


def remove_others(output_dir: Path, kept: Path | None) -> None:
    """Remove what killed merges of other inputs or with other options left; where nothing is kept, of any.

    That is also what they had moved to output_dir already, and what was left of the store that they replaced. Where
    there is a whole store, all files beside it are its own: they had moved nothing yet, or everything.
    """
    has_store = (output_dir / MANIFEST_NAME).exists()
    for folder in output_dir.glob(f"{_PREFIX}*"):
        if folder == kept:
            continue
        if not has_store:
            if (folder / MANIFEST_NAME).exists():
                _remove(output_dir, [name for name in _file_names(folder) if not (folder / name).exists()])
            if (folder / _REPLACED_NAME).exists():
                _remove(output_dir, _file_names(folder, _REPLACED_NAME))
        shutil.rmtree(folder)


def remove_leftovers(output_dir: Path) -> None:
    """Remove what merges left beside a whole store; nothing as long as one is at work, or where nobody may write."""
    if any(output_dir.glob(f"{_PREFIX}*")):
        with suppress(ConfigError, OSError), locked(output_dir):
            remove_others(output_dir, None)


def publish(staging: Path, output_dir: Path) -> None:
    """Move a finished store to where it belongs, in steps that a kill may interrupt anywhere.

    What was there stops being a store before its first file goes, and the new one is a store when its last has come.
    """
    names = _file_names(staging)
    old, replaced = output_dir / MANIFEST_NAME, staging / _REPLACED_NAME
    if old.exists():
        old.rename(replaced)
        sync_path(output_dir)
    for name in names:
        if (staging / name).exists():
            (output_dir / name).parent.mkdir(exist_ok=True)
            (staging / name).rename(output_dir / name)
    if replaced.exists():
        _remove(output_dir, sorted(set(_file_names(staging, _REPLACED_NAME)) - set(names)))
    for folder in {(output_dir / name).parent for name in names}:
        sync_path(folder)
    (staging / MANIFEST_NAME).rename(old)
    sync_path(output_dir)
    shutil.rmtree(staging)


def _file_names(folder: Path, name: str = MANIFEST_NAME) -> list[str]:
    return [item["name"] for item in read_store(folder, name)["files"]]


def _remove(output_dir: Path, names: list[str]) -> None:
    for name in names:
        path = output_dir / name
        path.unlink(missing_ok=True)
        if path.parent != output_dir and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()


def store_there(output_dir: Path) -> dict[str, Any] | None:
    if not (output_dir / MANIFEST_NAME).exists():
        return None
    try:
        return read_store(output_dir)
    except DamagedStore as error:
        raise ConfigError(str(error)) from error
    except DataError as error:
        raise ConfigError(f"{error}; to merge here, take it away") from error


def has_all_files(output_dir: Path, document: dict[str, Any]) -> bool:
    paths = [(output_dir / item["name"], item["num_bytes"]) for item in document["files"]]
    return all(path.is_file() and path.stat().st_size == num_bytes for path, num_bytes in paths)


def difference(document: dict[str, Any], plan: MergePlan) -> str | None:
    """In what a store differs from one that is planned: options, arrays or samples; None: in nothing."""
    if document["fingerprint"] == plan.fingerprint:
        return None
    others = other_options(document, plan.options)
    if others:
        return f"other {', '.join(others)}"
    is_other = plan.schema.difference(StoreSchema.from_document(document["schema"])) is not None
    return "other arrays" if is_other else "other samples"


def other_options(document: dict[str, Any], options: MergeOptions) -> dict[str, tuple[Any, Any]]:
    """The options that were others when a store was made: what they were, and what they are now."""
    old, new = document["options"], dict(options.decisive)
    # part_bytes follows from the target.
    pairs = {key: (old.get(key), new.get(key)) for key in {**old, **new} if key != "part_bytes"}
    return {_OPTION_NAMES.get(key, key): pair for key, pair in pairs.items() if pair[0] != pair[1]}
