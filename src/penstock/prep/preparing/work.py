"""The one function that runs everywhere: a task's raw files become batch files and a record of them."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded
from penstock.prep.preparing.extraction.extraction import Arrays, Extraction, Item
from penstock.prep.preparing.failures import Blaming, Counter, FileFailed, failing
from penstock.prep.preparing.forks import end_fork_of
from penstock.prep.preparing.inputs import mark_input
from penstock.prep.preparing.records import TaskRecord
from penstock.prep.preparing.tasks import Task
from penstock.readers.batch_files import SUFFIXES, save_batch
from penstock.readers.files import DataFile
from penstock.readers.samples import BatchBuilder
from penstock.readers.store_manifest import BatchRecord, InputRecord
from penstock.readers.store_schema import ArrayNames, StoreSchema

_TELL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Work:
    """What all tasks have in common; it is sent to every process."""

    folder: Path
    extraction: Extraction
    schema: StoreSchema
    batch_size: int
    layout: str = "native"
    compression: str = "none"
    level: int | None = None
    one_input_per_batch: bool = False
    """End a batch file where an input ends, so that splits can keep inputs together."""
    skips: bool = False
    """Leave out a file that fails, instead of stopping."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How far a task is, from its beginning, told with every batch file and once a second.

    After a file was left out it begins again.
    """

    task: int
    num_files: int
    num_samples: int
    file: str
    """The one it is at."""
    has_written: bool = False
    """Whether it has made a batch file."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that failed, of which nothing will be in the result."""

    task: int
    file: str
    reason: str
    stack: str


Tell = Callable[[TaskProgress | LeftOut], None]


def run_task(
    work: Work,
    task: Task,
    tell: Tell,
    left_out: dict[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TaskRecord:
    """Write all batch files of a task, and its record when they are whole.

    A file that fails may have samples in batch files already: the rest is looked through for others, and the task
    begins again without them. `left_out` are files that must not be touched, and why.
    """
    try:
        return _run_until_whole(work, task, tell, dict(left_out or {}), clock)
    except MemoryError as error:  # where the user's function has it, it is a failure of the file
        raise BudgetExceeded(
            f"{task.files[0].path}: memory has run out for batches of {work.batch_size:,} samples; lower "
            "preprocessing.batch_size or num_workers"
        ) from error


def _run_until_whole(
    work: Work, task: Task, tell: Tell, left_out: dict[str, str], clock: Callable[[], float]
) -> TaskRecord:
    while True:
        attempt = _Attempt(work, task, tell, left_out, clock)
        record = attempt.run()
        if not attempt.failures:
            record.save(work.folder)
            return record
        for failed in attempt.failures:
            left_out[failed.file] = failed.reason
            tell(LeftOut(task.number, failed.file, failed.reason, failed.stack))


class _Attempt:
    """One try: from the first file of a task to its last."""

    def __init__(
        self, work: Work, task: Task, tell: Tell, left_out: dict[str, str], clock: Callable[[], float]
    ) -> None:
        self._work, self._task, self._tell, self._left_out, self._clock = work, task, tell, left_out, clock
        self._builder = BatchBuilder(work.schema, work.batch_size)
        self.failures: list[FileFailed] = []
        """After the first, nothing is written any more."""
        self._batches: list[BatchRecord] = []
        self._told_at = 0.0
        self._num_samples = 0
        self._nan_samples = 0
        self._position = 0
        """Of the input that is being read."""
        self._blaming = Blaming(task.files)
        self._process_id = os.getpid()

    def run(self) -> TaskRecord:
        """All files, in order."""
        for path in self._work.folder.glob(f"{self._task.batch_prefix}*"):
            path.unlink()
        inputs = []
        for position, file in enumerate(self._task.files):
            self._position, self._blaming = position, Blaming(self._task.files[: position + 1])
            self._progress(file)
            with self._noting_failure():
                inputs.append(self._read(file))
        with self._noting_failure():
            self._write()
        return TaskRecord(
            self._task.number,
            tuple(inputs),
            tuple(self._batches),
            self._left_out,
            self._builder.largest_errors,
            self._nan_samples,
        )

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except FileFailed as failed:
            if not self._work.skips:
                raise
            self.failures.append(failed)
            self._builder.clear()

    def _read(self, file: DataFile) -> InputRecord:
        with failing(file, self._work.extraction.place):
            mark = mark_input(file)
        if file.path in self._left_out:
            return mark
        counter = Counter()
        for item in self._items(file, counter):
            counter.number += self._add(item, file, counter)
        self._check_unchanged(file, mark)
        if self._work.one_input_per_batch:
            self._write()
        return replace(mark, num_samples=counter.number)

    def _items(self, file: DataFile, counter: Counter) -> Iterator[Item]:
        """What the file gives. The failures of the user's function are told apart from those of writing."""
        items = self._work.extraction.items(file)
        while True:
            try:
                item = next(items)
            except BaseException as error:
                end_fork_of(self._process_id)
                if isinstance(error, StopIteration):
                    return
                with failing(file, self._work.extraction.place, counter):
                    raise
            yield item

    def _add(self, item: Item, file: DataFile, counter: Counter) -> int:
        """Put samples into the batch, which is written when it is full; gives how many they were."""
        if not isinstance(item, Arrays):
            with self._blaming:
                self._builder.add(item, file=file.path, number=counter.number)
            self._write_if_full(file)
            return 1
        taken = 0
        while taken < item.num_samples:
            with self._blaming:
                taken += self._builder.add_arrays(
                    item.values, taken, file=file.path, number=counter.number + taken
                )
            self._write_if_full(file)
        return taken

    def _write_if_full(self, file: DataFile) -> None:
        if self._builder.full:
            self._write()
            self._progress(file)
        elif self._clock() - self._told_at >= _TELL_SECONDS:
            self._progress(file)

    def _write(self) -> None:
        if not len(self._builder):
            return
        end_fork_of(self._process_id)
        work, number = self._work, len(self._batches)
        with self._blaming:
            arrays = self._builder.take()
        if self.failures:
            return
        path = work.folder / self._task.batch_name(number, SUFFIXES[work.layout])
        record = save_batch(path, arrays, layout=work.layout, compression=work.compression, level=work.level)
        self._batches.append(record)
        self._nan_samples += nan_samples(arrays, work.schema.names)
        self._num_samples += record.num_samples

    def _progress(self, file: DataFile) -> None:
        end_fork_of(self._process_id)
        self._told_at = self._clock()
        num_samples = self._num_samples + len(self._builder)
        number, has_written = self._task.number, bool(self._batches)
        self._tell(TaskProgress(number, self._position, num_samples, file.path, has_written))

    def _check_unchanged(self, file: DataFile, mark: InputRecord) -> None:
        if mark.modified_ns is not None and Path(file.path).stat().st_mtime_ns != mark.modified_ns:
            raise FileFailed(
                file.path,
                f"{file.path}: was changed while it was read; prepare again when nobody writes to it",
            )


def nan_samples(arrays: Mapping[str, NDArray[Any]], names: ArrayNames) -> int:
    """How many samples have features that are NaN."""
    features = [array for name, array in arrays.items() if name.startswith(names.features)]
    found = [
        np.isnan(array).any(axis=tuple(range(1, array.ndim))) for array in features if array.dtype.kind == "f"
    ]
    return int(np.logical_or.reduce(found).sum()) if found else 0
