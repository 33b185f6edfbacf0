"""The work as a whole: from raw files to a folder of batch files with a manifest."""

from dataclasses import replace
from pathlib import Path

from penstock.prep.preparing.failures import FileFailed
from penstock.prep.preparing.folder import LOG_NAME, Plan, PrepFolder
from penstock.prep.preparing.here import run_here
from penstock.prep.preparing.inputs import list_inputs
from penstock.prep.preparing.records import TaskRecord
from penstock.prep.preparing.schema_finding import find_schema
from penstock.prep.preparing.settings import (
    decisive_settings,
    extraction_of,
    feature_dtype,
    one_input_per_batch,
)
from penstock.prep.preparing.summary import PrepSummary
from penstock.prep.preparing.tasks import make_tasks
from penstock.prep.preparing.watching import Watch, WatchOptions
from penstock.prep.preparing.work import Work
from penstock.prep.sections import OnError, Preprocessing
from penstock.readers.sections import ReadingSection
from penstock.store.manifest import MANIFEST_NAME, Manifest

_COLUMNS = ("feature_columns", "label_columns", "mask_columns")


def prepare(
    section: Preprocessing,
    reading: ReadingSection | None = None,
    *,
    restart: bool = False,
    watching: WatchOptions | None = None,
) -> PrepSummary:
    """Write the batch files of all raw files, as far as they are not there yet, and their manifest last.

    `restart` removes what an earlier preparation wrote to the folder; `reading` tells how columns are read where no
    function extracts samples.
    """
    preparation = _Preparation(section, reading or ReadingSection(with_header=True))
    with preparation.folder.locked():
        if restart:
            preparation.folder.clear()
        return preparation.run(watching or WatchOptions())


class _Preparation:
    """The files, tasks and folder of one preparation."""

    def __init__(self, section: Preprocessing, reading: ReadingSection) -> None:
        self._section = section
        self._skips = section.on_error is OnError.skip
        self._settings = decisive_settings(section, reading)
        self._extraction = extraction_of(section, reading)
        self._files = list_inputs(section.input_path, of_any_kind=section.extract is not None)
        self._tasks = make_tasks(self._files)
        self.folder = PrepFolder(Path(section.intermediate_dir))

    def run(self, watching: WatchOptions) -> PrepSummary:
        """Do what is not done yet."""
        plan = self._plan()
        self.folder.remove_torn()
        kept = [record for task in self._tasks if (record := self.folder.done(task, self._skips))]
        done = {record.number for record in kept}
        waiting = [task for task in self._tasks if task.number not in done]
        if waiting:
            (self.folder.path / MANIFEST_NAME).unlink(missing_ok=True)
        with Watch(self.folder.path / LOG_NAME, self._tasks, kept, watching, 0) as watch:
            run_here(self._work(plan), waiting, watch)
        records = [watch.records[task.number] for task in self._tasks]
        self._write_manifest(plan, records)
        return PrepSummary.of(records, len(kept), watch.new_samples, 0, watch.seconds)

    def _plan(self) -> Plan:
        """What was begun here before, if it is the same as what is wanted now; else what begins now."""
        begun = self.folder.load_plan()
        if begun is not None:
            self.folder.check_same(begun, self._settings, self._files)
            return begun
        found = find_schema(self._extraction, self._files, feature_dtype(self._section), self._failed_at_once)
        plan = Plan(
            settings=self._settings,
            inputs=tuple((file.path, file.size_bytes) for file in self._files),
            schema=found.schema,
            columns={name: getattr(found.extraction.declared, name) for name in _COLUMNS},
        )
        self.folder.save_plan(plan)
        return plan

    def _failed_at_once(self, failed: FileFailed) -> None:
        """A file failed before the first sample; its task will say so, if it is to be left out."""
        if not self._skips:
            raise failed

    def _work(self, plan: Plan) -> Work:
        section = self._section
        declared = self._extraction.declared.model_copy(update=dict(plan.columns))
        return Work(
            folder=self.folder.path,
            extraction=replace(self._extraction, declared=declared),
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
