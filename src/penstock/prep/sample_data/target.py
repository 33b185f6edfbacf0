"""The directory that sample data goes to: whole or absent, and never at the cost of something else."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.config.errors import ConfigError, DataError
from penstock.prep.sample_data.summary import SUMMARY_NAME


@contextmanager
def whole_directory(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary directory beside `out` to write to; it takes the place of `out` when all went well."""
    _check_free(out, overwrite)
    staging = out.absolute().with_name(f".{out.absolute().name}.partial")
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        yield staging
        if out.exists():
            shutil.rmtree(out)
        staging.rename(out)
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check_free(out: Path, overwrite: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise ConfigError(f"{out}: is a file; sample data needs a directory")
    if not any(out.iterdir()):
        return
    if not overwrite:
        raise ConfigError(
            f"{out}: is not empty; choose another directory, or replace sample data with --overwrite"
        )
    if not (out / SUMMARY_NAME).exists():
        raise ConfigError(f"{out}: has no {SUMMARY_NAME}, so it is not sample data and is not overwritten")
