"""The folder of batch files: what it was begun with, what is done in it, and whether one may go on.

preparation.json      settings, inputs and schema, written before the first task
tasks/task_00000.json what a task made, written when its batch files are whole
batch_00000_00000.*   batch files
manifest.json         all of them, written last
log.jsonl             how it went
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError
from penstock.prep.preparing.changes import MODULE_CHECKSUM, PUT_BACK, change_since
from penstock.prep.preparing.inputs import is_same_input
from penstock.prep.preparing.records import TASKS_FOLDER, TaskRecord, record_path
from penstock.prep.preparing.tasks import Task
from penstock.readers.batch_files import SUFFIXES
from penstock.readers.files import DataFile
from penstock.readers.store_manifest import (
    MANIFEST_NAME,
    PREPARATION_NAME,
    DamagedFile,
    InputRecord,
    read_document,
    write_document,
)
from penstock.readers.store_schema import StoreSchema
from penstock.runtime.durable import remove_partial

LOG_NAME = "log.jsonl"
_KIND = "penstock preparation"
_VERSION = 1
_ANEW = "begin anew with penstock prep --restart, which removes what is done"


@dataclass(frozen=True)
class Plan:
    """What a preparation was begun with; nothing of it may change until it is done."""

    settings: Mapping[str, Any]
    """Those that decide what is in the batch files."""
    tasks: tuple[tuple[str, ...], ...]
    """The paths of the inputs, task by task."""
    schema: StoreSchema
    columns: Mapping[str, Any]
    """Those of the first file, where it gives columns."""
    earlier: tuple[Mapping[str, Any], ...] = ()
    """What was made with texts of the module of extract that were changed since: its checksum and tasks."""

    @property
    def paths(self) -> list[str]:
        """All inputs, in order."""
        return [path for paths in self.tasks for path in paths]


class PrepFolder:
    """One intermediate_dir."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else prepares here until this process ends, however it ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ConfigError(
                f"{self.path}: another penstock prep is writing to it; wait for it, or choose another intermediate_dir"
            ) from None
        try:
            yield
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Remove everything that a preparation wrote, and nothing else: where none was begun, nothing."""
        if not (self.path / PREPARATION_NAME).exists():
            return
        (self.path / MANIFEST_NAME).unlink(missing_ok=True)
        shutil.rmtree(self.path / TASKS_FOLDER, ignore_errors=True)
        for path in self.path.glob("batch_*"):
            if path.suffix in SUFFIXES.values():
                path.unlink()
        (self.path / LOG_NAME).unlink(missing_ok=True)
        # Last: as long as it is there, what a kill leaves of the rest is known to be ours.
        (self.path / PREPARATION_NAME).unlink()

    def remove_torn(self) -> None:
        """Remove what a kill left half written."""
        remove_partial(self.path)
        remove_partial(self.path / TASKS_FOLDER)

    def load_plan(self) -> Plan | None:
        """What was begun here; None where nothing was."""
        path = self.path / PREPARATION_NAME
        if not path.exists():
            self._check_empty()
            return None
        try:
            body = read_document(path, _KIND, _VERSION, absent="is not there")
        except DamagedFile as error:
            raise DamagedFile(error.problem, _ANEW) from None
        return Plan(
            settings=body["settings"],
            tasks=tuple(tuple(paths) for paths in body["tasks"]),
            schema=StoreSchema.from_document(body["schema"]),
            columns=body["columns"],
            earlier=tuple(body.get("earlier", ())),
        )

    def save_plan(self, plan: Plan) -> None:
        """Write down what is about to begin."""
        (self.path / TASKS_FOLDER).mkdir(exist_ok=True)
        body = {
            "settings": dict(plan.settings),
            "tasks": [list(paths) for paths in plan.tasks],
            "schema": plan.schema.as_document(),
            "columns": dict(plan.columns),
            "earlier": [dict(text) for text in plan.earlier],
        }
        write_document(self.path / PREPARATION_NAME, _KIND, _VERSION, body)

    def going_on(
        self, plan: Plan, settings: Mapping[str, Any], files: Sequence[DataFile], keep_done: bool = False
    ) -> Plan | None:
        """What to go on with, where settings and files are those it was begun with.

        Others are refused, naming the first that differs, unless no task is done: then nothing is lost by beginning
        anew, which None says. `keep_done`: a function that was mended is used from now on.
        """
        change = change_since(plan.settings, settings, plan.paths, [file.path for file in files])
        if change is None:
            return plan
        if not any((self.path / TASKS_FOLDER).glob("task_*.json")):
            return None
        if not (keep_done and change.may_keep_done):
            raise DataError(f"{self.path}: {change.line}")
        mended = self._mended(plan, settings)
        self.save_plan(mended)
        return mended

    def _mended(self, plan: Plan, settings: Mapping[str, Any]) -> Plan:
        """The same with another text of the function; tasks of which files were left out are done again with it."""
        known = {number for text in plan.earlier for number in text["tasks"]}
        kept = []
        for number in range(len(plan.tasks)):
            record = TaskRecord.load(self.path, number)
            if record is not None and record.left_out:
                record_path(self.path, number).unlink()
            elif record is not None and number not in known:
                kept.append(number)
        text = {"checksum": plan.settings.get(MODULE_CHECKSUM), "tasks": kept}
        return replace(plan, settings=settings, earlier=(*plan.earlier, text))

    def done(self, task: Task, skips: bool) -> TaskRecord | None:
        """The record of a task that need not be done again; its inputs must be those that were read.

        One of which nothing is there may be mended: then its task is done again.
        """
        record = TaskRecord.load(self.path, task.number)
        if record is None or (record.left_out and not skips) or record.damage(self.path) is not None:
            return None
        changed = [
            (entry, file)
            for entry, file in zip(record.inputs, task.files, strict=True)
            if not is_same_input(entry, file)
        ]
        for entry, file in changed:
            if file.path not in record.left_out:
                raise self._changed(entry, file)
        return None if changed else record

    def _changed(self, entry: InputRecord, file: DataFile) -> DataError:
        difference = "has changed"
        if entry.num_bytes != file.size_bytes:
            difference = f"had {entry.num_bytes} bytes and has {file.size_bytes}"
        return DataError(
            f"{self.path}: was begun with something else: input {file.path} {difference}; {PUT_BACK}"
        )

    def _check_empty(self) -> None:
        others = [
            path.name for path in self.path.iterdir() if path.name[0] != "." and path.name != TASKS_FOLDER
        ]
        if others:
            raise DataError(
                f"{self.path}: holds {min(others)}, which penstock prep did not begin; choose an empty intermediate_dir"
            )
