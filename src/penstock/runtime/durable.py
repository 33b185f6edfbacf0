"""Bytes that survive a kill and a power cut: written, flushed to disk, then made visible by a rename.

A `Journal` is the exception: it grows line by line, is readable meanwhile, and loses nothing to a kill.
"""

import fcntl
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB

BLOCK_BYTES = 8 * MIB
"""How much of a file is in memory at a time, whatever its size."""

PARTIAL_SUFFIX = ".partial"
"""Of files that are not whole. Their names begin with a dot and differ each time; a kill leaves them behind."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file that appears under its name when it is whole and on disk; on an error nothing appears."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL_SUFFIX}")
    try:
        with partial.open("w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_path(path.parent)


def replace_text(path: Path, text: str) -> None:
    """Write a file of one string so that a kill leaves the old one or the new one, never a part."""
    with replacing(path) as stream:
        stream.write(text.encode())


def remove_partial(directory: Path) -> int:
    """Remove what killed writers left in a directory nobody else is writing to; gives the number of files."""
    found = [path for path in directory.glob(f".*{PARTIAL_SUFFIX}") if path.is_file()]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def sync_path(path: Path) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on disk; a new name may else vanish."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Journal:
    """A file with one JSON object per line, appended to; cut back when a run resumes."""

    path: Path

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record. Numbers that are not finite become null, since JSON has none."""
        line = json.dumps(finite(record), allow_nan=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def read(self) -> list[dict[str, Any]]:
        """All whole records; a last line that a kill left torn is passed over."""
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return records

    def cut_back(self, step: int) -> None:
        """Drop what was written after `step`, so that a resumed run does not report it twice."""
        kept = [record for record in self.read() if record.get("step", 0) <= step]
        replace_text(self.path, "".join(json.dumps(record) + "\n" for record in kept))


def finite(value: Any) -> Any:
    """The same value with null for numbers that are not finite, since JSON has none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return value


@contextmanager
def locked_folder(folder: Path, when_busy: str) -> Iterator[None]:
    """Nobody else holds the folder until this process ends, however it ends; `when_busy`: the error if one does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(when_busy) from error
        yield
    finally:
        os.close(descriptor)


def check_replaceable(out: Path, what: str, marker: str, overwrite: bool) -> None:
    """Refuse an output folder whose content would be lost, unless the file `marker` shows that it is `what`."""
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file; the output is a directory")
    if not out.exists() or not any(out.iterdir()):
        return
    if not overwrite:
        raise ConfigError(
            f"{out}: is not empty; choose another directory, or replace {what} with --overwrite"
        )
    if not (out / marker).exists():
        raise ConfigError(f"{out}: has no {marker}, so it is not {what} and is not overwritten")


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` to write to; it takes the place of `out` when all went well.

    What a killed process left there is removed by the next one; a process that is still at work is noticed.
    """
    out = Path(os.path.abspath(out))
    staging, old = out.with_name(f".{out.name}.partial"), out.with_name(f".{out.name}.old")
    try:
        staging.mkdir(parents=True, exist_ok=True)
        with locked_folder(
            staging, f"{out}: another penstock is writing it; wait for it, or choose another folder"
        ):
            for entry in staging.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
            try:
                yield staging
                sync_path(staging)
                shutil.rmtree(old, ignore_errors=True)
                if out.exists():
                    out.rename(old)
                staging.rename(out)
                sync_path(out.parent)
                shutil.rmtree(old, ignore_errors=True)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror or error})") from error
