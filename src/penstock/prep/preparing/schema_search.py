"""The first sample of all files tells the schema: looked for here, or in a process that the user's code may end."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penstock.config.errors import DataError
from penstock.prep.preparing.crew.worker import Failed
from penstock.prep.preparing.crew.worker_process import WorkerProcess, advice_after
from penstock.prep.preparing.extraction.extraction import Extraction
from penstock.prep.preparing.extraction.schema_finding import Found, found_in
from penstock.prep.preparing.failures import FileFailed
from penstock.prep.preparing.forks import end_fork_of
from penstock.readers.files import DataFile
from penstock.runtime.worker_process import WorkerError, how_ended


@dataclass(frozen=True, slots=True)
class SchemaSearch:
    """What is looked for, and where."""

    extraction: Extraction
    files: tuple[DataFile, ...]
    feature_types: Mapping[str, str]
    """The type of each array of features."""
    skips: bool
    """Look further where a file fails: its task will say so."""
    reason: str | None = None
    """Why the first file that failed has failed."""


def find_schema(search: SchemaSearch, tell: Callable[[DataFile], None] = lambda file: None) -> Found:
    """Look at one file after the other, up to the first that gives something; `tell` hears which."""
    process_id = os.getpid()
    for file in search.files:
        tell(file)
        try:
            found = found_in(file, search.extraction, search.feature_types)
        except FileFailed as failed:
            if not search.skips:
                raise
            search = replace(search, reason=search.reason or str(failed))
            continue
        finally:
            end_fork_of(process_id)
        if found is not None:
            return found
    raise _nothing(search)


def find_schema_apart(search: SchemaSearch) -> Found:
    """The same in another process; a file at which that ends has failed."""
    first = 0
    while first < len(search.files):
        rest = replace(search, files=search.files[first:])
        with WorkerProcess(partial(_search_for_parent, rest)) as worker:
            try:
                while isinstance(message := worker.receive(), DataFile):
                    first = search.files.index(message)
            except (EOFError, OSError):
                message = _ended(worker.end(), search.files[first])
        if isinstance(message, Failed):
            message.raise_here()
        if not isinstance(message, WorkerError):
            found: Found = message
            return found
        if not search.skips:
            raise message
        search = replace(search, reason=search.reason or str(message))
        first += 1
    raise _nothing(search)


def _ended(exit_code: int, file: DataFile) -> WorkerError:
    return WorkerError(
        f"{file.path}: a worker process {how_ended(exit_code)} at this file; {advice_after(exit_code)}"
    )


def _nothing(search: SchemaSearch) -> DataError:
    if search.reason is not None:
        return DataError(f"{search.reason}; no file is left that gives a sample")
    if len(search.files) == 1:
        return DataError(f"{search.files[0].path}: gives no sample")
    return DataError(
        f"{search.files[0].path}: neither this file nor any other of the {len(search.files)} gives a sample"
    )


def _search_for_parent(search: SchemaSearch, _: Callable[[], Any], send: Callable[[Any], None]) -> None:
    try:
        send(find_schema(search, send))
    except BrokenPipeError:
        raise
    except Exception as error:
        send(Failed.of(error))
