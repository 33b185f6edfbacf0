"""Raw files in tasks, and the one function that does a task, in whatever process: batch files and a record of them.

Tasks depend on the files and their sizes alone, never on how many processes there are: the same files give the same
batch files everywhere. A task whose record is on disk is done; any other is done again as a whole.
"""

import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, ConfigError, DataError, PenstockError
from penstock.config.sizes import KIB, MIB
from penstock.prep.extract import Arrays, Extraction, Item, in_one_line
from penstock.prep.inputs import mark_input
from penstock.prep.sections import OnError, Preprocessing, SplitBy
from penstock.readers.batch_files import SUFFIXES, read_header, save_batch
from penstock.readers.files import DataFile
from penstock.readers.samples import BatchBuilder
from penstock.readers.store_schema import (
    ArrayNames,
    BatchRecord,
    InputRecord,
    StoreSchema,
    read_document,
    write_document,
)

TASKS_FOLDER = "tasks"
# Enough that many processes end at about the same time, and that little is lost when one is killed.
_WANTED_TASKS = 256
_MIN_TASK_BYTES, _MAX_TASK_BYTES = 64 * KIB, 64 * MIB
_PROGRESS_SECONDS = 1.0
_KIND, _VERSION = "penstock task", 1


class FileFailed(DataError):
    """A raw file cannot be used. The text says why; `stack` is where it happened, in whatever process."""

    def __init__(self, file: str, reason: str, stack: str = "") -> None:
        super().__init__(reason)
        self.file, self.reason, self.stack = file, reason, stack

    def __reduce__(self) -> tuple[type["FileFailed"], tuple[str, str, str]]:
        return type(self), (self.file, self.reason, self.stack)


@dataclass(frozen=True, slots=True)
class PrepTask:
    """Some raw files behind each other; their samples go to batch files that bear the task's number."""

    number: int
    files: tuple[DataFile, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Files that must not be touched, and why."""

    @property
    def batch_prefix(self) -> str:
        return f"batch_{self.number:05d}_"


def make_tasks(files: Sequence[DataFile]) -> list[PrepTask]:
    """Group files that follow each other by their bytes; a large one is a task by itself."""
    total_bytes = sum(file.size_bytes for file in files)
    max_bytes = min(max(total_bytes // _WANTED_TASKS, _MIN_TASK_BYTES), _MAX_TASK_BYTES)
    groups: list[list[DataFile]] = []
    num_bytes = 0
    for file in files:
        if not groups or num_bytes + file.size_bytes > max_bytes:
            groups.append([])
            num_bytes = 0
        groups[-1].append(file)
        num_bytes += file.size_bytes
    return [PrepTask(number, tuple(group)) for number, group in enumerate(groups)]


@dataclass(frozen=True)
class TaskRecord:
    """What is known of a task that is done, kept beside its batch files so that nobody does it again."""

    number: int
    inputs: tuple[InputRecord, ...]
    batches: tuple[BatchRecord, ...]
    left_out: Mapping[str, str]
    """Files of which nothing is there, and why."""
    largest_errors: Mapping[str, float]
    """Of rounding to float16, by array."""
    nan_samples: int = 0

    @property
    def num_samples(self) -> int:
        return sum(batch.num_samples for batch in self.batches)

    @classmethod
    def load(cls, folder: Path, number: int) -> Self | None:
        try:
            body = read_document(record_path(folder, number), _KIND, _VERSION, absent="is not there")
        except DataError:
            return None
        inputs = tuple(InputRecord(**entry) for entry in body.pop("inputs"))
        batches = tuple(BatchRecord(**entry) for entry in body.pop("batches"))
        return cls(inputs=inputs, batches=batches, **body)

    def is_whole(self, folder: Path) -> bool:
        try:
            return all(read_header(folder / batch.name).record == batch for batch in self.batches)
        except DataError:
            return False


def record_path(folder: Path, number: int) -> Path:
    return folder / TASKS_FOLDER / f"task_{number:05d}.json"


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What all tasks have in common; it is sent to every process."""

    section: Preprocessing
    folder: Path
    extraction: Extraction
    schema: StoreSchema


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How far a task is, sent with every batch file and once a second; after a file was left out it begins again."""

    task: int
    num_files: int
    num_samples: int
    file: str
    has_written: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that failed, of which nothing will be in the result."""

    task: int
    file: str
    reason: str
    stack: str


Report = Callable[[TaskProgress | LeftOut], None]


def run_task(
    context: TaskContext, task: PrepTask, report: Report, clock: Callable[[], float] = time.monotonic
) -> TaskRecord:
    """Write all batch files of a task, and its record when they are whole.

    A file that fails may have samples in batch files already: the rest is read for other failures, and the task begins
    again without them.
    """
    left_out = dict(task.left_out)
    try:
        while True:
            attempt = _Attempt(context, replace(task, left_out=left_out), report, clock)
            record = attempt.run()
            if not attempt.failures:
                write_document(record_path(context.folder, task.number), _KIND, _VERSION, asdict(record))
                return record
            for failed in attempt.failures:
                left_out[failed.file] = failed.reason
                report(LeftOut(task.number, failed.file, failed.reason, failed.stack))
    except MemoryError as error:  # where the user's function has it, it is a failure of the file
        raise BudgetExceeded(
            f"{task.files[0].path}: memory has run out for batches of {context.section.batch_size:,} samples; lower "
            "preprocessing.batch_size or num_workers"
        ) from error


class _Attempt:
    def __init__(
        self, context: TaskContext, task: PrepTask, report: Report, clock: Callable[[], float]
    ) -> None:
        self._context, self._task, self._report, self._clock = context, task, report, clock
        self._builder = BatchBuilder(context.schema, context.section.batch_size)
        self.failures: list[FileFailed] = []
        """After the first, nothing is written any more."""
        self._batches: list[BatchRecord] = []
        self._reported_at = 0.0
        self._num_samples = self._nan_samples = 0
        self._index = 0

    def run(self) -> TaskRecord:
        task, skips = self._task, self._context.section.on_error is OnError.skip
        for path in self._context.folder.glob(f"{task.batch_prefix}*"):
            path.unlink()
        inputs = []
        for self._index, file in enumerate((*task.files, None)):
            try:
                if file is None:
                    self._write()
                else:
                    self._report_progress(file)
                    inputs.append(self._read(file))
            except FileFailed as failed:
                if not skips:
                    raise
                self.failures.append(failed)
                self._builder.clear()
        batches, errors = tuple(self._batches), self._builder.largest_errors
        return TaskRecord(task.number, tuple(inputs), batches, task.left_out, errors, self._nan_samples)

    def _read(self, file: DataFile) -> InputRecord:
        extraction, number = self._context.extraction, 0
        try:
            mark = mark_input(file)
        except Exception as error:
            raise_failure(error, file, extraction.function)
        if file.path in self._task.left_out:
            return mark
        items = extraction.items(file)
        while True:
            try:
                item = next(items, None)
            except BaseException as error:
                raise_failure(error, file, extraction.function, number)
            if item is None:
                break
            number += self._add(item, file, number)
        if mark.modified_ns is not None and Path(file.path).stat().st_mtime_ns != mark.modified_ns:
            reason = f"{file.path}: was changed while it was read; prepare again when nobody writes to it"
            raise FileFailed(file.path, reason)
        splits = self._context.section.splits
        if splits is not None and splits.by is SplitBy.file:  # so that splits can keep inputs together
            self._write()
        return replace(mark, num_samples=number)

    def _add(self, item: Item, file: DataFile, number: int) -> int:
        """Put samples into the batch, which is written when it is full; gives how many they were."""
        num_samples = item.num_samples if isinstance(item, Arrays) else 1
        taken = 0
        while taken < num_samples:
            try:
                if isinstance(item, Arrays):
                    taken += self._builder.add_arrays(
                        item.values, taken, file=file.path, number=number + taken
                    )
                else:
                    self._builder.add(item, file=file.path, number=number)
                    taken = 1
            except DataError as error:
                raise self._blamed(error) from error
            if self._builder.full:
                self._write()
                self._report_progress(file)
            elif self._clock() - self._reported_at >= _PROGRESS_SECONDS:
                self._report_progress(file)
        return num_samples

    def _blamed(self, error: DataError) -> FileFailed:
        """Numbers are checked together, so it may be the fault of an earlier file: the message begins with it."""
        text, files = str(error), self._task.files[: self._index + 1]
        culprit = next((file for file in reversed(files) if text.startswith(f"{file.path}: ")), files[-1])
        return FileFailed(culprit.path, text, "".join(traceback.format_exception(error)))

    def _write(self) -> None:
        if not len(self._builder):
            return
        try:
            arrays = self._builder.take()
        except DataError as error:
            raise self._blamed(error) from error
        if self.failures:
            return
        context, section = self._context, self._context.section
        name = f"{self._task.batch_prefix}{len(self._batches):05d}{SUFFIXES[section.layout.value]}"
        layout, compression, level = section.layout, section.compression, section.compression_level
        record = save_batch(
            context.folder / name, arrays, layout=layout.value, compression=compression.value, level=level
        )
        self._batches.append(record)
        self._nan_samples += nan_samples(arrays, context.schema.names)
        self._num_samples += record.num_samples

    def _report_progress(self, file: DataFile) -> None:
        self._reported_at = self._clock()
        num_samples, has_written = self._num_samples + len(self._builder), bool(self._batches)
        self._report(TaskProgress(self._task.number, self._index, num_samples, file.path, has_written))


def nan_samples(arrays: Mapping[str, NDArray[Any]], names: ArrayNames) -> int:
    features = [array for name, array in arrays.items() if name.startswith(names.features)]
    found = [
        np.isnan(array).any(axis=tuple(range(1, array.ndim))) for array in features if array.dtype.kind == "f"
    ]
    return int(np.logical_or.reduce(found).sum()) if found else 0


def raise_failure(
    error: BaseException, file: DataFile, function: str | None, number: int | None = None
) -> NoReturn:
    """Whatever is raised while a file is read is the file's failure; a wrong run file is not.

    `number` is the sample that is being made. The user's function may raise anything; Ctrl-C is only for this process,
    since workers ignore it.
    """
    is_interrupt = (
        isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )
    if is_interrupt or isinstance(error, ConfigError | FileFailed):
        raise error
    if isinstance(error, PenstockError):
        text = str(error)
        reason = text if text.startswith(file.path) else f"{file.path}: {text}"
    else:
        sample = "" if number is None else f"sample {number}: "
        who = "reading" if function is None else f"'{function}'"
        reason = f"{file.path}: {sample}{who} failed: {in_one_line(error)}"
    raise FileFailed(file.path, reason, traceback.format_exc()) from error
