"""The output folder: whole or absent, and never at the cost of something else."""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.config.errors import ConfigError, DataError
from penstock.prep.rewrite.summary import SUMMARY_NAME
from penstock.runtime.durable import sync_path


@contextmanager
def whole_folder(out: Path, inputs: Iterable[str], overwrite: bool) -> Iterator[Path]:
    """A hidden folder beside `out` to write to; it takes the place of `out` when all went well.

    What a killed run left there is removed by the next one; a run that is still at work is noticed.
    """
    check_output(out, inputs, overwrite)
    out = Path(os.path.abspath(out))
    staging = out.with_name(f".{out.name}.partial")
    try:
        staging.mkdir(parents=True, exist_ok=True)
        with _locked(staging, out):
            _clear(staging)
            try:
                yield staging
                _put_in_place(staging, out)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror or error})") from error


def check_output(out: Path, inputs: Iterable[str], overwrite: bool) -> None:
    """Refuse a folder whose content would be lost, and one that is being read."""
    _check_free(out, overwrite)
    for path in inputs:
        if "://" not in path and out.resolve() in Path(path).resolve().parents:
            raise ConfigError(
                f"{out}: holds the input {Path(path).name}; choose another folder for the output"
            )


def _check_free(out: Path, overwrite: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise ConfigError(f"{out}: is a file; the output is a folder")
    if not any(out.iterdir()):
        return
    if not overwrite:
        raise ConfigError(f"{out}: is not empty; choose another folder, or replace it with --overwrite")
    if not (out / SUMMARY_NAME).exists():
        raise ConfigError(
            f"{out}: has no {SUMMARY_NAME}, so that it was not written by penstock rewrite and is not overwritten; "
            "choose another folder"
        )


@contextmanager
def _locked(staging: Path, out: Path) -> Iterator[None]:
    """Held by this process until it ends, however it ends."""
    descriptor = os.open(staging, os.O_RDONLY)
    try:
        _lock(descriptor, out)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, out: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigError(
            f"{out}: another penstock rewrite is writing it; wait for it, or choose another folder"
        ) from error


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _put_in_place(staging: Path, out: Path) -> None:
    sync_path(staging)
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    staging.rename(out)
    sync_path(out.parent)
    shutil.rmtree(old, ignore_errors=True)
