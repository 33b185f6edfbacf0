"""Which of batch file, folder of batch files and store a path is, by its names and first bytes."""

from pathlib import Path

from penstock.store.batch_file.files import SUFFIXES
from penstock.store.batch_file.native_header import MAGIC
from penstock.store.contents.batches import batch_contents, batch_folder_contents
from penstock.store.contents.contents import Contents
from penstock.store.legacy import PICKLE_SUFFIXES
from penstock.store.manifest import BATCHES_KIND, MANIFEST_NAME
from penstock.store.merge.document import KIND as STORE_KIND
from penstock.store.merge.staging import check_ended

_BEGINNING_BYTES = 256
"""The kind of a document stands at its beginning; it can be told where the rest was lost."""


def contents_of(path: Path) -> Contents | None:
    """What is in a path, without a value read; None where it is something else."""
    if path.is_dir():
        return _folder_contents(path)
    if path.is_file() and _is_batch_file(path):
        return batch_contents(path)
    return None


def _folder_contents(folder: Path) -> Contents | None:
    beginning = _beginning(folder / MANIFEST_NAME)
    if _names_kind(beginning, STORE_KIND):
        from penstock.store.contents.stores import store_contents

        return store_contents(folder)
    check_ended(folder)
    if _names_kind(beginning, BATCHES_KIND) or _has_batch_files(folder):
        return batch_folder_contents(folder)
    return None


def _names_kind(beginning: bytes, kind: str) -> bool:
    return f'"kind": "{kind}"'.encode() in beginning


def _has_batch_files(folder: Path) -> bool:
    return any(path.is_file() for suffix in SUFFIXES.values() for path in folder.glob(f"batch_*{suffix}"))


def _is_batch_file(path: Path) -> bool:
    """By its name, that of old files among them; and a native one under any name."""
    named = path.suffix in (SUFFIXES["native"], *PICKLE_SUFFIXES) or (
        path.suffix == SUFFIXES["npz"] and path.name.startswith("batch_")
    )
    return named or _beginning(path).startswith(MAGIC)


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_BEGINNING_BYTES)
    except OSError:
        return b""
