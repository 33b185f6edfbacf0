"""The pieces of work of a merge: each can be done in any process, and again after a kill, with the same bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from penstock.store.merge.layouts.targets import PartChecksums
from penstock.store.merge.moving.accumulating import accumulate_batches
from penstock.store.merge.moving.buckets import SCATTERED_NAME, Buckets
from penstock.store.merge.moving.copying import copy_batches
from penstock.store.merge.moving.gathering import gather, gather_parts
from penstock.store.merge.moving.scattering import scatter
from penstock.store.merge.plan import MergePlan


class Kind(StrEnum):
    """What a task does."""

    copy = "copy"
    scatter = "scatter"
    gather = "gather"
    accumulate = "accumulate"


@dataclass(frozen=True)
class Task:
    """One piece of work."""

    number: int
    """In the journal."""
    kind: Kind
    chosen: range
    """Batches to copy or scatter, buckets to gather."""
    num_samples: int
    """That come to their final places by it."""


@dataclass(frozen=True)
class Work:
    """All that a process must know to do any task."""

    plan: MergePlan
    folder: Path
    buckets: Buckets | None
    """Of a shuffle in bounded memory."""
    is_accumulative: bool = False

    @cached_property
    def phases(self) -> list[list[Task]]:
        """All tasks; those of a phase may be done at once, and must be done before the next begins."""
        if self.is_accumulative:
            whole = range(len(self.plan.batches))
            return [[Task(0, Kind.accumulate, whole, self.plan.batches.total_samples)]]
        if self.buckets is None:
            counts = self.plan.batches.num_samples
            return [
                [
                    Task(number, Kind.copy, part, int(counts[part.start : part.stop].sum()))
                    for number, part in enumerate(self.plan.parts())
                ]
            ]
        scattered = [Task(number, Kind.scatter, part, 0) for number, part in enumerate(self.buckets.parts)]
        return [scattered, list(self._gather_tasks(self.buckets, len(scattered)))]

    def _gather_tasks(self, buckets: Buckets, first: int) -> Iterator[Task]:
        for number, part in enumerate(gather_parts(buckets), first):
            num_samples = buckets.bounds(part[-1])[1] - buckets.bounds(part[0])[0]
            yield Task(number, Kind.gather, part, num_samples)

    @property
    def num_tasks(self) -> int:
        """Of all phases."""
        return sum(len(phase) for phase in self.phases)

    def run(self, task: Task) -> PartChecksums:
        """Do a task; gives the checksums of what came to its final place."""
        if task.kind == Kind.accumulate:
            return accumulate_batches(self.plan, self.folder)
        if task.kind == Kind.copy:
            return self._copy(task)
        assert self.buckets is not None
        if task.kind == Kind.scatter:
            scatter(self.plan, self.buckets, self.folder, task.number)
            return {}
        return self._gather(task, self.buckets)

    def _copy(self, task: Task) -> PartChecksums:
        if self.plan.options.has_part_files:
            from penstock.store.merge.moving.part_writing import write_batches

            return write_batches(self.plan, self.folder, task.number, task.chosen)
        return copy_batches(self.plan, self.folder, task.chosen)

    def _gather(self, task: Task, buckets: Buckets) -> PartChecksums:
        if self.plan.options.has_part_files:
            from penstock.store.merge.moving.part_writing import write_buckets

            number = task.number - len(buckets.parts)
            return write_buckets(self.plan, buckets, self.folder, number, task.chosen)
        return gather(self.plan, buckets, self.folder, task.chosen)

    def files_of(self, task: Task, checksums: PartChecksums) -> set[str]:
        """The files that a task has written to; and the folders, where it has made new ones in them."""
        if task.kind == Kind.scatter:
            return {SCATTERED_NAME}
        if self.plan.options.has_part_files:
            return {name for split, file in checksums for name in (split, file)}
        return {self.plan.places[key].file for key in checksums}
