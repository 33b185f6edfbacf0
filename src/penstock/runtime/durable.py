"""Bytes that survive a kill and a power cut: written, flushed to disk, then made visible by a rename."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
            flush_to_disk(stream)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_path(path.parent)


def remove_partial(directory: Path) -> int:
    """Remove what killed writers left in a directory nobody else is writing to; gives the number of files."""
    found = [path for path in directory.glob(f".*{PARTIAL_SUFFIX}") if path.is_file()]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on disk."""
    with path.open("wb") as stream:
        stream.write(content)
        flush_to_disk(stream)


def flush_to_disk(stream: BinaryIO) -> None:
    """Wait until everything written to `stream` is on disk."""
    stream.flush()
    os.fsync(stream.fileno())


def sync_path(path: Path) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on disk; a new name may else vanish."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_at_once(directory: Path, hidden: Path) -> None:
    """Remove a directory so that a kill leaves it either complete or out of sight under its hidden name."""
    directory.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` to write to; it takes the place of `out` when all went well.

    What a killed process left there is removed by the next one; a process that is still at work is noticed.
    """
    out = Path(os.path.abspath(out))
    staging, old = out.with_name(f".{out.name}.partial"), out.with_name(f".{out.name}.old")
    try:
        staging.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(staging, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until this process ends, however it ends
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
        finally:
            os.close(descriptor)
    except BlockingIOError as error:
        raise ConfigError(
            f"{out}: another penstock is writing it; wait for it, or choose another folder"
        ) from error
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror or error})") from error
