"""From raw files to a folder of batch files with a manifest: in parallel, in bounded memory, and restartable.

    inputs                  which raw files there are, and which folders may be written to
    extract, columns        a file -> samples or arrays, by the user's function or by its columns
    split_groups            what keeps samples together in splits
    schema                  which arrays there are, from the first sample
    tasks                   some files at a time: kept, or done again as a whole
    state_folder            what was begun in intermediate_dir, and whether one may go on there
    watch, ray              who supervises it; the same tasks on a cluster

Which bytes there are depends on the files and the run file alone, not on who did which task when.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock.config.errors import BudgetExceeded, ConfigError
from penstock.config.sizes import MIB, format_size
from penstock.prep.extract import Extraction
from penstock.prep.inputs import (
    INTERMEDIATE_DIR,
    OUTPUT_DIR,
    check_output_folder,
    check_store_folder,
    list_inputs,
)
from penstock.prep.schema import Found, SchemaSearch, feature_types, find_schema, find_schema_in_worker
from penstock.prep.sections import Executor, OnError, Preprocessing
from penstock.prep.state_folder import LOG_NAME, Plan, StateFolder, decisive_settings, group_key_of
from penstock.prep.tasks import TASKS_FOLDER, PrepTask, TaskContext, make_tasks, run_task
from penstock.prep.watch import PrepSummary, Watch, WatchOptions
from penstock.readers.batch_files import check_layout
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.store_schema import MANIFEST_NAME, StoreManifest, StoreSchema
from penstock.runtime.durable import remove_partial
from penstock.runtime.memory import default_limit, stage_of, tree_bytes
from penstock.runtime.workers import PoolSize, WorkerPool
from penstock.runtime.world import available_cores

_COLUMNS = ("feature_columns", "feature_groups", "label_columns", "mask_columns")
_CORES_LEFT = 2
"""For the process that hands out tasks, and for whoever else is here."""
_BATCH_COPIES = 3
"""A batch that is filled, numbers that wait to be converted, and what is being written."""
_AMPLE = 4
"""Memory for so many times what a worker should take is ample."""
_MIN_WORKER_BYTES = 48 * MIB
"""An interpreter with NumPy and pyarrow, beside what it shares with others."""
_NEVER_REFUSED_BYTES = 16 * MIB
"""Batches that take so little are not what a limit is too low for."""
_SPARE_BYTES = 16 * MIB
"""A program does not take the same every time: so much more than it takes now is advised."""


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
    changed, with what its text before has made; `merges`: a store will be made too, so that its folder is checked.
    """
    preparation = _Preparation(section, reading, limit_bytes)
    preparation.check_folders(merges)
    # What a function of the user prints goes where that of workers goes: standard output is for what was made.
    with preparation.folder.locked(), redirect_stdout(sys.stderr):
        if restart:
            preparation.folder.clear()
        return preparation.run(watching or WatchOptions(), keep_done)


@dataclass(frozen=True, slots=True)
class Preview:
    files: Sequence[DataFile]
    extract: str | None
    schema: StoreSchema
    intermediate_dir: str
    output_dir: str

    @property
    def num_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def preview(
    section: Preprocessing,
    reading: ReadingSection | None = None,
    *,
    limit_bytes: int | None = None,
    ends_when_exceeded: bool = False,
) -> Preview:
    """All that a preparation does before its first task; nothing is written."""
    preparation = _Preparation(section, reading, limit_bytes)
    folder = preparation.folder
    with redirect_stdout(sys.stderr):
        preparation.check_folders(merges=True)
        begun = folder.load_plan() if folder.path.exists() else None
        if begun is not None:
            folder.plan_to_continue(begun, preparation.settings, preparation.files)
        _, schema = preparation.find_schema()
        preparation.limits(schema).check(section, ends_when_exceeded)
    return Preview(preparation.files, section.extract, schema, section.intermediate_dir, section.output_dir)


class _Preparation:
    def __init__(
        self, section: Preprocessing, reading: ReadingSection | None, limit_bytes: int | None
    ) -> None:
        self._section = section
        self._limit_bytes = default_limit() if limit_bytes is None else limit_bytes
        self._skips = section.on_error is OnError.skip
        try:
            check_layout(section.layout.value, section.compression.value, section.compression_level)
        except ConfigError as error:
            raise ConfigError.at("preprocessing.compression_level", str(error)) from None
        reading = reading or ReadingSection(with_header=True)
        self.settings = decisive_settings(section, reading)
        self._extraction = Extraction(section.extract, section.sample_schema, reading, group_key_of(section))
        self.files = list_inputs(section.input_path, of_any_kind=section.extract is not None)
        self.folder = StateFolder(Path(section.intermediate_dir))

    def check_folders(self, merges: bool) -> None:
        section = self._section
        check_output_folder(INTERMEDIATE_DIR, section.intermediate_dir, section.input_path, self.files)
        if merges:
            check_output_folder(OUTPUT_DIR, section.output_dir, section.input_path, self.files)
            check_store_folder(section)

    def find_schema(self) -> Found:
        search = SchemaSearch(self._extraction, tuple(self.files), feature_types(self._section), self._skips)
        return find_schema_in_worker(search) if self._section.parallel else find_schema(search)

    def limits(self, schema: StoreSchema) -> "WorkerLimits":
        batch_bytes = self._section.batch_size * schema.row_bytes
        return WorkerLimits(available_cores(), self._limit_bytes, tree_bytes(), batch_bytes)

    def run(self, watching: WatchOptions, keep_done: bool) -> PrepSummary:
        folder = self.folder.path
        with stage_of(watching.monitor, "finding the schema"):
            plan = self._plan(keep_done)
        for written in (folder, folder / TASKS_FOLDER):
            remove_partial(written)
        by_path = {file.path: file for file in self.files}
        tasks = [
            PrepTask(number, tuple(by_path[path] for path in paths))
            for number, paths in enumerate(plan.tasks)
        ]
        kept = [record for task in tasks if (record := self.folder.done(task, self._skips))]
        done = {record.number for record in kept}
        waiting = [task for task in tasks if task.number not in done]
        limits = self.limits(plan.schema)
        if waiting:
            (folder / MANIFEST_NAME).unlink(missing_ok=True)
            limits.check(self._section, watching.stops_when_exceeded and watching.monitor is not None)
        with (
            stage_of(watching.monitor, "preparing"),
            executor(self._section, len(waiting), limits) as (num_workers, execute),
            Watch(folder / LOG_NAME, tasks, kept, watching, num_workers, self._skips) as watch,
        ):
            extraction = self._extraction.with_columns(plan.columns)
            execute(TaskContext(self._section, folder, extraction, plan.schema), waiting, watch)
        records = [watch.records[task.number] for task in tasks]
        StoreManifest(
            inputs=tuple(entry for record in records for entry in record.inputs),
            batches=tuple(batch for record in records for batch in record.batches),
            schema=plan.schema,
            settings=plan.settings,
        ).write(folder)
        summary = PrepSummary(records, len(kept), watch.new_samples, watch.num_workers, watch.seconds)
        watch.write("end", **summary.as_record())
        return summary

    def _plan(self, keep_done: bool) -> Plan:
        """What was begun here before, if it is the same as what is wanted now; else what begins now."""
        begun = self.folder.load_plan()
        if begun is not None:
            plan = self.folder.plan_to_continue(begun, self.settings, self.files, keep_done)
            if plan is not None:
                return plan
            self.folder.clear()
        extraction, schema = self.find_schema()
        plan = Plan(
            settings=self.settings,
            tasks=tuple(tuple(file.path for file in task.files) for task in make_tasks(self.files)),
            schema=schema,
            columns={name: getattr(extraction.declared, name) for name in _COLUMNS},
        )
        self.folder.save_plan(plan)
        return plan


Execute = Callable[[TaskContext, Sequence[PrepTask], Watch], None]


@contextmanager
def executor(section: Preprocessing, num_tasks: int, limits: "WorkerLimits") -> Iterator[tuple[int, Execute]]:
    """Where the run file wants tasks to run: in how many other processes at first (0: in this one), and how."""
    if not section.parallel or not num_tasks:
        yield 0, _run_here
    elif section.executor is Executor.ray:
        from penstock.prep.ray import cluster, run_on_ray

        with cluster() as ray:
            count = section.num_workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            yield count, partial(run_on_ray, ray, count)
    else:
        size = limits.pool_size(section.num_workers, num_tasks)
        yield size.start, partial(_run_in_processes, size)


def _run_here(context: TaskContext, tasks: Sequence[PrepTask], watch: Watch) -> None:
    for task in tasks:
        watch.done(run_task(context, task, watch.on_event))


def _run_in_processes(size: PoolSize, context: TaskContext, tasks: Sequence[PrepTask], watch: Watch) -> None:
    with WorkerPool(partial(run_task, context), size, watch) as pool:
        for _, record in pool.run(tasks):
            watch.done(record)
        watch.num_workers = pool.max_running


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    cores: int
    limit_bytes: int
    process_bytes: int
    """What this process takes, after it has made a first sample: a worker takes about as much, and its batches."""
    batch_bytes: int

    def pool_size(self, wanted: int | None, num_tasks: int) -> PoolSize:
        """Where memory is ample, all workers start at once; else a few, and more when it is known what they take."""
        count = max(1, self.cores - _CORES_LEFT) if wanted is None else wanted
        count = min(count, max(1, num_tasks))
        worker_bytes = self.process_bytes + _BATCH_COPIES * self.batch_bytes
        ample = (self.limit_bytes - self.process_bytes) // (_AMPLE * worker_bytes)
        return PoolSize(max(1, min(count, ample)), count, self.limit_bytes, "preprocessing.num_workers")

    def check(self, section: Preprocessing, ends_when_exceeded: bool) -> None:
        """Refuse what cannot be done in the memory of this machine; `ends_when_exceeded`: nor may it take more."""
        if section.executor is Executor.ray:
            return
        others_bytes = self.process_bytes + (_MIN_WORKER_BYTES if section.parallel else 0)
        left_bytes = max(0, self.limit_bytes - others_bytes)
        needed_bytes = _BATCH_COPIES * self.batch_bytes

        def enough(batch_bytes: int) -> str:
            return f"{math.ceil((others_bytes + _BATCH_COPIES * batch_bytes + _SPARE_BYTES) / MIB)}MiB"

        if needed_bytes > max(left_bytes, _NEVER_REFUSED_BYTES):
            row_bytes = self.batch_bytes // section.batch_size
            fitting = left_bytes // (_BATCH_COPIES * row_bytes)
            advice = f"raise memory.limit to {enough(self.batch_bytes)}"
            if fitting:
                advice = f"set batch_size to {fitting}, or {advice}"
            else:
                advice = f"{advice}, or to {enough(row_bytes)} and set batch_size to 1"
            raise BudgetExceeded(
                f"preprocessing.batch_size: filling, converting and writing {section.batch_size:,} samples of "
                f"{format_size(row_bytes)} each takes up to {format_size(needed_bytes)}, but memory.limit of "
                f"{format_size(self.limit_bytes)} leaves {format_size(left_bytes)} for it; {advice}"
            )
        if ends_when_exceeded and self.process_bytes >= self.limit_bytes:
            raise BudgetExceeded(
                f"memory.limit: is {format_size(self.limit_bytes)}, but the program alone takes "
                f"{format_size(self.process_bytes)}; raise it to {enough(self.batch_bytes)}"
            )
