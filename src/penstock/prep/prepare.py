"""From raw files to a folder of batch files with a manifest: in parallel, in bounded memory, and restartable.

    inputs, tasks        files in order, and in tasks: what is done at a stretch, and kept or done again as a whole
    extract, columns     a file -> samples or arrays, by the user's function or by its columns
    split_groups         what keeps samples together in splits
    schema               which arrays there are, from the first sample
    state_folder, places what was begun in intermediate_dir, and whether one may go on there
    watch, ray           who hears of everything; the same tasks on a cluster

Which bytes there are depends on the files and the run file alone, not on who did which task when.
"""

import io
import logging
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
from penstock.prep.inputs import list_inputs
from penstock.prep.places import INTERMEDIATE_DIR, OUTPUT_DIR, check_output_place, check_place
from penstock.prep.schema import Found, SchemaSearch, feature_types, find_schema, find_schema_apart
from penstock.prep.sections import Executor, OnError, Preprocessing
from penstock.prep.state_folder import LOG_NAME, Plan, StateFolder, decisive_settings, group_key_of
from penstock.prep.tasks import Task, TaskContext, make_tasks, run_task
from penstock.prep.watch import PrepSummary, Watch, WatchOptions
from penstock.readers.batch_files import check_layout
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.store_manifest import MANIFEST_NAME, Manifest
from penstock.readers.store_schema import StoreSchema
from penstock.runtime.memory import default_limit, tree_bytes
from penstock.runtime.workers import PoolSize, WorkerPool
from penstock.runtime.world import available_cores

_COLUMNS = ("feature_columns", "feature_groups", "label_columns", "mask_columns")
_NUM_WORKERS = "preprocessing.num_workers"
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

logger = logging.getLogger(__name__)


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
    preparation = _Preparation(section, reading, limit_bytes)
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
        return sum(file.size_bytes for file in self.files)


def preview(
    section: Preprocessing,
    reading: ReadingSection | None = None,
    *,
    limit_bytes: int | None = None,
    ends_when_exceeded: bool = False,
) -> Preview:
    """All that a preparation does before its first task; nothing is written.

    `ends_when_exceeded`: one that takes more than `limit_bytes` would be ended.
    """
    preparation = _Preparation(section, reading, limit_bytes)
    with redirect_stdout(sys.stderr):
        return preparation.preview(ends_when_exceeded)


class _Preparation:
    """The files, tasks and folder of one preparation."""

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
        self._settings = decisive_settings(section, reading)
        self._extraction = Extraction(section.extract, section.sample_schema, reading, group_key_of(section))
        self._files = list_inputs(section.input_path, of_any_kind=section.extract is not None)
        self.folder = StateFolder(Path(section.intermediate_dir))

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
            self.folder.plan_to_continue(begun, self._settings, self._files)
        section = self._section
        schema = self._found().schema
        self._limits(schema).check(section, ends_when_exceeded)
        return Preview(self._files, section.extract, schema, section.intermediate_dir, section.output_dir)

    def run(self, watching: WatchOptions, keep_done: bool) -> PrepSummary:
        with watching.stage("finding the schema"):
            plan = self._plan(keep_done)
        self.folder.remove_torn()
        by_path = {file.path: file for file in self._files}
        tasks = [
            Task(number, tuple(by_path[path] for path in paths)) for number, paths in enumerate(plan.tasks)
        ]
        kept = [record for task in tasks if (record := self.folder.done(task, self._skips))]
        done = {record.number for record in kept}
        waiting = [task for task in tasks if task.number not in done]
        limits = self._limits(plan.schema)
        if waiting:
            (self.folder.path / MANIFEST_NAME).unlink(missing_ok=True)
            limits.check(self._section, watching.ends_when_exceeded)
        with (
            watching.stage("preparing"),
            executor(self._section, len(waiting), limits) as (num_workers, execute),
        ):
            log = self.folder.path / LOG_NAME
            with Watch(log, tasks, kept, watching, num_workers, self._skips) as watch:
                if plan.earlier:
                    watch.write("earlier_texts", tasks=[text["tasks"] for text in plan.earlier])
                extraction = self._extraction.with_columns(plan.columns)
                context = TaskContext(self._section, self.folder.path, extraction, plan.schema)
                execute(context, waiting, watch)
        records = [watch.records[task.number] for task in tasks]
        Manifest(
            inputs=tuple(entry for record in records for entry in record.inputs),
            batches=tuple(batch for record in records for batch in record.batches),
            schema=plan.schema,
            settings=plan.settings,
        ).write(self.folder.path)
        summary = PrepSummary.of(records, len(kept), watch.new_samples, watch.num_workers, watch.seconds)
        watch.write("end", **summary.as_record())
        return summary

    def _plan(self, keep_done: bool) -> Plan:
        """What was begun here before, if it is the same as what is wanted now; else what begins now."""
        begun = self.folder.load_plan()
        if begun is not None:
            plan = self.folder.plan_to_continue(begun, self._settings, self._files, keep_done)
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
        search = SchemaSearch(self._extraction, tuple(self._files), feature_types(self._section), self._skips)
        return find_schema_apart(search) if self._section.parallel else find_schema(search)

    def _limits(self, schema: StoreSchema) -> "WorkerLimits":
        batch_bytes = self._section.batch_size * schema.row_bytes
        return WorkerLimits(available_cores(), self._limit_bytes, tree_bytes(), batch_bytes)


Execute = Callable[[TaskContext, Sequence[Task], Watch], None]


@contextmanager
def executor(section: Preprocessing, num_tasks: int, limits: "WorkerLimits") -> Iterator[tuple[int, Execute]]:
    """Where the run file wants tasks to run: in how many other processes at first (0: in this one), and how."""
    if not section.parallel or not num_tasks:
        yield 0, run_here
    elif section.executor is Executor.ray:
        from penstock.prep.ray import cluster, num_ray_workers, run_on_ray

        with cluster() as ray:
            count = num_ray_workers(ray, section.num_workers)
            yield count, partial(run_on_ray, ray, count)
    else:
        size = limits.pool_size(section.num_workers, num_tasks)
        yield size.start, partial(run_in_processes, size)


def run_here(context: TaskContext, tasks: Sequence[Task], watch: Watch) -> None:
    """One after the other, in this process."""
    printed = _Lines(watch.printed)
    with redirect_stdout(printed):
        try:
            for task in tasks:
                watch.done(run_task(context, task, watch.on_event))
        finally:
            printed.end()


def run_in_processes(size: PoolSize, context: TaskContext, tasks: Sequence[Task], watch: Watch) -> None:
    """As many at once as memory allows."""
    with WorkerPool(partial(run_task, context), size, watch) as pool:
        for _, record in pool.run(tasks):
            watch.done(record)
        watch.num_workers = pool.max_running
        if pool.max_running < pool.size.max:
            logger.info(
                "%s: %d of %d worker processes were started; the work was done before it was known whether "
                "memory.limit (%s) has room for more",
                *(_NUM_WORKERS, pool.max_running, pool.size.max, format_size(size.limit_bytes)),
            )


class _Lines(io.TextIOBase):
    """A stream that gives each line on when it is whole."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._rest = show, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._show(line)
        return len(text)

    def end(self) -> None:
        if self._rest:
            self._show(self._rest)


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What there is for workers."""

    cores: int
    limit_bytes: int
    process_bytes: int
    """What this process takes, after it has made a first sample: a worker takes about as much, and its batches."""
    batch_bytes: int

    def pool_size(self, wanted: int | None, num_tasks: int) -> PoolSize:
        """Where memory is ample, all workers start at once; else a few, and more when it is known what they take.

        `wanted` is what the run file says, None for as many as there are cores less 2; at least one.
        """
        count = max(1, self.cores - _CORES_LEFT) if wanted is None else wanted
        count = min(count, max(1, num_tasks))
        worker_bytes = self.process_bytes + _BATCH_COPIES * self.batch_bytes
        ample = (self.limit_bytes - self.process_bytes) // (_AMPLE * worker_bytes)
        return PoolSize(max(1, min(count, ample)), count, self.limit_bytes, _NUM_WORKERS)

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
