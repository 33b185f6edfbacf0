"""Where tasks run: in this process, in several of this machine, or on a Ray cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from penstock.prep.preparing.crew.crew_size import Room, check_batch_fits, check_program_fits, crew_size
from penstock.prep.preparing.crew.printing import lines_of_this_process
from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import Work, run_task
from penstock.prep.sections import Executor, Preprocessing


@dataclass(frozen=True, slots=True)
class Executing:
    """A way to run tasks."""

    num_workers: int
    """How many run at once in other processes at first; 0: in this one."""
    run: Callable[[Work, Sequence[Task], Watch], None]
    """Do all of them, and tell the watch."""


@contextmanager
def executing(section: Preprocessing, num_tasks: int, room: Room) -> Iterator[Executing]:
    """What the run file asks for, ready to run."""
    if not section.parallel or not num_tasks:
        yield Executing(0, run_here)
    elif section.executor is Executor.ray:
        from penstock.prep.preparing.crew.ray_tasks import cluster, num_ray_workers, run_on_ray

        with cluster() as ray:
            count = num_ray_workers(ray, section.num_workers)
            yield Executing(count, partial(run_on_ray, ray, count))
    else:
        from penstock.prep.preparing.crew.crew import run_in_processes

        size = crew_size(section.num_workers, num_tasks, room)
        yield Executing(size.start, partial(run_in_processes, size))


def check_room(section: Preprocessing, room: Room, ends_when_exceeded: bool) -> None:
    """Refuse what cannot be done in the memory of this machine; `ends_when_exceeded`: nor may it take more."""
    if section.executor is Executor.ray:
        return
    check_batch_fits(section.batch_size, room, apart=section.parallel)
    if ends_when_exceeded:
        check_program_fits(room, apart=section.parallel)


def run_here(work: Work, tasks: Sequence[Task], watch: Watch) -> None:
    """One after the other, in this process."""
    with lines_of_this_process(watch.note):
        for task in tasks:
            watch.done(run_task(work, task, watch.hear))
