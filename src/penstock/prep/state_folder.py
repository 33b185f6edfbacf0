"""The folder of batch files: what it was begun with, what is done in it, and whether one may go on.

preparation.json      settings, inputs and schema, written before the first task
tasks/task_00000.json what a task made, written when its batch files are whole
batch_00000_00000.*   batch files
manifest.json         all of them, written last
log.jsonl             how it went
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.config.errors import DataError
from penstock.config.write import section_data
from penstock.prep.extract import module_file, source_checksum
from penstock.prep.inputs import is_same_input
from penstock.prep.schema import feature_dtype
from penstock.prep.sections import Preprocessing, SplitBy
from penstock.prep.tasks import TASKS_FOLDER, PrepTask, TaskRecord, record_path
from penstock.readers.batch_files import SUFFIXES
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.store_schema import (
    MANIFEST_NAME,
    PREPARATION_NAME,
    DamagedFile,
    StoreSchema,
    read_document,
    write_document,
)
from penstock.runtime.durable import locked_folder

LOG_NAME = "log.jsonl"
_KIND = "penstock preparation"
_VERSION = 1
# The setting that tells one text of the user's function from another.
_MODULE_CHECKSUM = "checksum of the module of extract"
_PUT_BACK = "put it back as it was, start over with --restart, or choose another intermediate_dir"


def group_key_of(section: Preprocessing) -> str | None:
    """What tells the group of a sample, where splits keep groups together."""
    splits = section.splits
    return splits.group_key if splits is not None and splits.by is SplitBy.group else None


def decisive_settings(section: Preprocessing, reading: ReadingSection) -> dict[str, Any]:
    """What decides which bytes are in the batch files, as JSON can carry it; messages name the first difference."""
    settings: dict[str, Any] = {
        "extract": section.extract,
        "batch_size": section.batch_size,
        "dtype": feature_dtype(section),
        "feature_dtypes": {group: dtype.value for group, dtype in section.feature_dtypes.items()},
        "schema": section_data(section.sample_schema, full=True),
        "layout": section.layout.value,
        "compression": section.compression.value,
        "compression_level": section.compression_level,
        "splits.by": (SplitBy.sample if section.splits is None else section.splits.by).value,
        "splits.group_key": group_key_of(section),
    }
    if section.extract is None:
        settings["data_config"] = section_data(reading, full=True)
    else:
        settings[_MODULE_CHECKSUM] = source_checksum(section.extract)
    return settings


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


class StateFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def locked(self) -> AbstractContextManager[None]:
        self.path.mkdir(parents=True, exist_ok=True)
        cure = "wait for it, or choose another intermediate_dir"
        return locked_folder(self.path, f"{self.path}: another penstock prep is writing to it; {cure}")

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

    def load_plan(self) -> Plan | None:
        path = self.path / PREPARATION_NAME
        if not path.exists():
            names = (entry.name for entry in self.path.iterdir())
            others = [name for name in names if name[0] != "." and name != TASKS_FOLDER]
            if others:
                raise DataError(
                    f"{self.path}: holds {min(others)}, which penstock prep did not begin; choose an empty "
                    "intermediate_dir"
                )
            return None
        try:
            body = read_document(path, _KIND, _VERSION, absent="is not there")
        except DamagedFile as error:
            cure = "start over with penstock prep --restart, which removes what is done"
            raise DamagedFile(error.problem, cure) from None
        return Plan(
            settings=body["settings"],
            tasks=tuple(tuple(paths) for paths in body["tasks"]),
            schema=StoreSchema.from_document(body["schema"]),
            columns=body["columns"],
        )

    def save_plan(self, plan: Plan) -> None:
        (self.path / TASKS_FOLDER).mkdir(exist_ok=True)
        body = {
            "settings": dict(plan.settings),
            "tasks": [list(paths) for paths in plan.tasks],
            "schema": plan.schema.as_document(),
            "columns": dict(plan.columns),
        }
        write_document(self.path / PREPARATION_NAME, _KIND, _VERSION, body)

    def plan_to_continue(
        self, plan: Plan, settings: Mapping[str, Any], files: Sequence[DataFile], keep_done: bool = False
    ) -> Plan | None:
        """What to go on with, where settings and files are those it was begun with.

        Others are refused, naming the first that differs, unless no task is done: then None says that it may begin
        again. `keep_done`: a function that was corrected is used from now on.
        """
        change = change_since(plan, settings, [file.path for file in files])
        is_other_text = plan.settings.get(_MODULE_CHECKSUM) != settings.get(_MODULE_CHECKSUM)
        if change is None and not is_other_text:
            return plan
        if not any((self.path / TASKS_FOLDER).glob("task_*.json")):
            return None
        if change is not None:
            raise DataError(f"{self.path}: {change}")
        if not keep_done:
            raise DataError(
                f"{self.path}: the module of extract ({module_file(settings['extract'])}) was changed since it was "
                "begun; go on with --keep-done, which keeps what the text before has made and does the rest with this "
                "one, or start over with --restart"
            )
        # Tasks of which files were left out are done again with the new text.
        for number in range(len(plan.tasks)):
            record = TaskRecord.load(self.path, number)
            if record is not None and record.left_out:
                record_path(self.path, number).unlink()
        plan = replace(plan, settings=settings)
        self.save_plan(plan)
        return plan

    def done(self, task: PrepTask, skips: bool) -> TaskRecord | None:
        """The record of a task that need not be done again; an input that was left out may have been corrected."""
        record = TaskRecord.load(self.path, task.number)
        if record is None or (record.left_out and not skips) or not record.is_whole(self.path):
            return None
        is_changed = False
        for entry, file in zip(record.inputs, task.files, strict=True):
            if is_same_input(entry, file):
                continue
            if file.path in record.left_out:
                is_changed = True
                continue
            difference = "has changed"
            if entry.num_bytes != file.size_bytes:
                difference = f"had {entry.num_bytes} bytes and has {file.size_bytes}"
            raise DataError(
                f"{self.path}: was begun with something else: input {file.path} {difference}; {_PUT_BACK}"
            )
        return None if is_changed else record


def change_since(plan: Plan, settings: Mapping[str, Any], paths: Sequence[str]) -> str | None:
    """The first difference in settings and files, and what to do about it; the text of extract does not count."""
    old, old_paths = plan.settings, [path for task in plan.tasks for path in task]
    for key in {**old, **settings}:
        if key != _MODULE_CHECKSUM and old.get(key) != settings.get(key):
            differences = ", ".join(_differences(key, old.get(key), settings.get(key)))
            return f"was begun with something else: {differences}; {_PUT_BACK}"
    added = [path for path in paths if path not in {*old_paths}]
    gone = [path for path in old_paths if path not in {*paths}]
    if added:
        more = f"{len(added):,} were added, the first of them {added[0]}"
        first = f"{added[0]} was added" if len(added) == 1 else more
        files = f"{first}; {_PUT_BACK.partition(', ')[2]}"
    elif gone:
        more = f"{len(gone):,} are gone, the first of them {gone[0]}"
        first = f"{gone[0]} is gone" if len(gone) == 1 else more
        files = f"{first}; {_PUT_BACK.replace('it back as it was', 'back')}"
    elif old_paths != [*paths]:
        files = f"they are in another order; {_PUT_BACK}"
    else:
        return None
    return f"was begun with other files: {files}"


def _differences(key: str, old: Any, new: Any) -> list[str]:
    """What was and what is; of what both have keys in, only those that differ."""
    if not (old and new and isinstance(old, Mapping) and isinstance(new, Mapping)):
        return [f"{key} was {json.dumps(old)} and is {json.dumps(new)}"]
    return [
        line
        for inner in {**old, **new}
        if old.get(inner) != new.get(inner)
        for line in _differences(f"{key}.{inner}", old.get(inner), new.get(inner))
    ]
