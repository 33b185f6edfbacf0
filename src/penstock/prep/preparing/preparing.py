"""The work as a whole: from raw files to a folder of batch files with a manifest."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.prep.preparing.crew.crew_size import Room
from penstock.prep.preparing.crew.executing import check_room, executing
from penstock.prep.preparing.extraction.schema_finding import Found
from penstock.prep.preparing.folder import LOG_NAME, Plan, PrepFolder
from penstock.prep.preparing.inputs import list_inputs
from penstock.prep.preparing.output_place import check_output_place
from penstock.prep.preparing.places import INTERMEDIATE_DIR, OUTPUT_DIR, check_place
from penstock.prep.preparing.records import TaskRecord
from penstock.prep.preparing.schema_search import SchemaSearch, find_schema, find_schema_apart
from penstock.prep.preparing.settings import (
    decisive_settings,
    extraction_of,
    feature_types,
    one_input_per_batch,
)
from penstock.prep.preparing.summary import PrepSummary
from penstock.prep.preparing.tasks import make_tasks, same_tasks
from penstock.prep.preparing.watching import Watch, WatchOptions
from penstock.prep.preparing.work import Work
from penstock.prep.sections import OnError, Preprocessing
from penstock.readers.batch_files import check_layout
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.store_manifest import MANIFEST_NAME, Manifest
from penstock.readers.store_schema import StoreSchema
from penstock.runtime.cores import available_cores
from penstock.runtime.limits import default_limit
from penstock.runtime.memory import tree_bytes

_COLUMNS = ("feature_columns", "feature_groups", "label_columns", "mask_columns")


def prepare(
    section: Preprocessing,
    reading: ReadingSection | None = None,
    *,
    limit_bytes: int | None = None,
    restart: bool = False,
    keep_done: bool = False,
    merges: bool = False,
    watching: WatchOptions | None = None,
) -> PrepSummary:
    """Write the batch files of all raw files, as far as they are not there yet, and their manifest last.

    `reading` tells how columns are read where no function extracts samples; `limit_bytes` is what all processes may
    take; `restart` removes what an earlier preparation wrote to the folder; `keep_done` goes on after the function was
    changed, with what its text before has made; `merges`: a store will be made too, so that its place is looked at.
    """
    reading = reading or ReadingSection(with_header=True)
    preparation = _Preparation(section, reading, default_limit() if limit_bytes is None else limit_bytes)
    preparation.check_places(merges)
    # What a function of the user prints goes where that of workers goes: standard output is for what was made.
    with preparation.folder.locked(), redirect_stdout(sys.stderr):
        if restart:
            preparation.folder.clear()
        return preparation.run(watching or WatchOptions(), keep_done)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a preparation would work on."""

    files: Sequence[DataFile]
    extract: str | None
    schema: StoreSchema
    intermediate_dir: str
    output_dir: str

    @property
    def num_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files)


def look_at(
    section: Preprocessing,
    reading: ReadingSection | None = None,
    *,
    limit_bytes: int | None = None,
    ends_when_exceeded: bool = False,
) -> Preview:
    """All that a preparation does before its first task; nothing is written.

    `ends_when_exceeded`: one that takes more than `limit_bytes` would be ended.
    """
    reading = reading or ReadingSection(with_header=True)
    preparation = _Preparation(section, reading, default_limit() if limit_bytes is None else limit_bytes)
    with redirect_stdout(sys.stderr):
        return preparation.preview(ends_when_exceeded)


class _Preparation:
    """The files, tasks and folder of one preparation."""

    def __init__(self, section: Preprocessing, reading: ReadingSection, limit_bytes: int) -> None:
        self._section = section
        self._limit_bytes = limit_bytes
        self._skips = section.on_error is OnError.skip
        _check_compression(section)
        self._settings = decisive_settings(section, reading)
        self._extraction = extraction_of(section, reading)
        self._files = list_inputs(section.input_path, of_any_kind=section.extract is not None)
        self.folder = PrepFolder(Path(section.intermediate_dir))

    def check_places(self, merges: bool) -> None:
        """Refuse folders that cannot be written to, or that hold raw files, as long as nothing is written."""
        section = self._section
        check_place(INTERMEDIATE_DIR, section.intermediate_dir, section.input_path, self._files)
        if merges:
            check_place(OUTPUT_DIR, section.output_dir, section.input_path, self._files)
            check_output_place(section)

    def preview(self, ends_when_exceeded: bool) -> Preview:
        """Look at places, files and memory, and make the first sample."""
        self.check_places(merges=True)
        begun = self.folder.load_plan() if self.folder.path.exists() else None
        if begun is not None:
            self.folder.going_on(begun, self._settings, self._files)
        section = self._section
        schema = self._found().schema
        check_room(section, self._room(schema), ends_when_exceeded)
        return Preview(self._files, section.extract, schema, section.intermediate_dir, section.output_dir)

    def run(self, watching: WatchOptions, keep_done: bool) -> PrepSummary:
        """Do what is not done yet."""
        with watching.stage("finding the schema"):
            plan = self._plan(keep_done)
        self.folder.remove_torn()
        tasks = same_tasks(self._files, plan.tasks)
        kept = [record for task in tasks if (record := self.folder.done(task, self._skips))]
        done = {record.number for record in kept}
        waiting = [task for task in tasks if task.number not in done]
        if waiting:
            (self.folder.path / MANIFEST_NAME).unlink(missing_ok=True)
        work = self._work(plan)
        room = self._room(plan.schema)
        if waiting:
            check_room(self._section, room, watching.ends_when_exceeded)
        with watching.stage("preparing"), executing(self._section, len(waiting), room) as executor:
            log = self.folder.path / LOG_NAME
            with Watch(log, tasks, kept, watching, executor.num_workers) as watch:
                if plan.earlier:
                    watch.write("earlier_texts", tasks=[text["tasks"] for text in plan.earlier])
                executor.run(work, waiting, watch)
        records = [watch.records[task.number] for task in tasks]
        self._write_manifest(plan, records)
        summary = PrepSummary.of(records, len(kept), watch.new_samples, watch.num_workers, watch.seconds)
        watch.write("end", **summary.as_record())
        return summary

    def _room(self, schema: StoreSchema) -> Room:
        return Room(
            cores=available_cores(),
            limit_bytes=self._limit_bytes,
            process_bytes=tree_bytes(),
            batch_bytes=self._section.batch_size * schema.row_bytes,
        )

    def _plan(self, keep_done: bool) -> Plan:
        """What was begun here before, if it is the same as what is wanted now; else what begins now."""
        begun = self.folder.load_plan()
        if begun is not None:
            plan = self.folder.going_on(begun, self._settings, self._files, keep_done)
            if plan is not None:
                return plan
            self.folder.clear()
        found = self._found()
        plan = Plan(
            settings=self._settings,
            tasks=tuple(tuple(file.path for file in task.files) for task in make_tasks(self._files)),
            schema=found.schema,
            columns={name: getattr(found.extraction.declared, name) for name in _COLUMNS},
        )
        self.folder.save_plan(plan)
        return plan

    def _found(self) -> Found:
        """What the first sample tells."""
        search = SchemaSearch(self._extraction, tuple(self._files), feature_types(self._section), self._skips)
        return find_schema_apart(search) if self._section.parallel else find_schema(search)

    def _work(self, plan: Plan) -> Work:
        section = self._section
        return Work(
            folder=self.folder.path,
            extraction=self._extraction.with_columns(plan.columns),
            schema=plan.schema,
            batch_size=section.batch_size,
            layout=section.layout.value,
            compression=section.compression.value,
            level=section.compression_level,
            one_input_per_batch=one_input_per_batch(section),
            skips=self._skips,
        )

    def _write_manifest(self, plan: Plan, records: list[TaskRecord]) -> None:
        Manifest(
            inputs=tuple(entry for record in records for entry in record.inputs),
            batches=tuple(batch for record in records for batch in record.batches),
            schema=plan.schema,
            settings=plan.settings,
        ).write(self.folder.path)


def _check_compression(section: Preprocessing) -> None:
    try:
        check_layout(section.layout.value, section.compression.value, section.compression_level)
    except ConfigError as error:
        raise ConfigError.at("preprocessing.compression_level", str(error)) from None
