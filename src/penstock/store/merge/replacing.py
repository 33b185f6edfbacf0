"""The store that is already where a merge goes: whether it is the same, and else in what it differs."""

from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.document import DamagedStore, read_store
from penstock.store.merge.options import MergeOptions
from penstock.store.merge.plan import MergePlan
from penstock.store.schema import StoreSchema

_OPTION_NAMES = {"level": "compression_level", "names": "names of arrays"}
"""As users know them, where that differs."""

_FOLLOWS_FROM_TARGET = "part_bytes"


def store_there(output_dir: Path) -> dict[str, Any] | None:
    """The manifest of the store in a folder; None where there is none."""
    if not (output_dir / MANIFEST_NAME).exists():
        return None
    try:
        return read_store(output_dir)
    except DamagedStore as error:
        raise ConfigError(str(error)) from error
    except DataError as error:
        raise ConfigError(f"{error}; to merge here, take it away") from error


def has_all_files(output_dir: Path, document: dict[str, Any]) -> bool:
    """Whether all files of a store are there, by their sizes."""
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
    pairs = {key: (old.get(key), new.get(key)) for key in {**old, **new} if key != _FOLLOWS_FROM_TARGET}
    return {_OPTION_NAMES.get(key, key): pair for key, pair in pairs.items() if pair[0] != pair[1]}
