"""The same tasks on a Ray cluster, which a run file chooses with `executor: ray`.

All machines must see the same files under the same paths, and have the module of `extract`. A cluster that is running
is used (RAY_ADDRESS, or one that this program is connected to); else one of this machine's cores is started.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from penstock.config.errors import ConfigError
from penstock.prep.preparing.crew.second_chances import SecondChances
from penstock.prep.preparing.crew.worker import Assignment, Failed, Outcome, outcome
from penstock.prep.preparing.crew.worker_process import TICK_SECONDS
from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import LeftOut, TaskProgress, Work

_QUIET = {"include_dashboard": False, "configure_logging": False, "log_to_driver": False}


def import_ray() -> Any:
    """The library, where it is installed."""
    try:
        return import_module("ray")
    except ModuleNotFoundError as error:
        raise ConfigError.at(
            "preprocessing.executor",
            "ray needs the library: pip install 'penstock[ray]'; or set executor: local",
        ) from error


@contextmanager
def cluster() -> Iterator[Any]:
    """A connection to a cluster; one that was there before stays."""
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    ray.init(**_QUIET)
    try:
        yield ray
    finally:
        ray.shutdown()


def num_ray_workers(ray: Any, wanted: int | None) -> int:
    """How many tasks may run at once: as many as the run file says, or as the cluster has cores."""
    return wanted or max(1, int(ray.cluster_resources().get("CPU", 1)))


def run_on_ray(ray: Any, num_workers: int, work: Work, tasks: Sequence[Task], watch: Watch) -> None:
    """Do all tasks on a cluster, so many at a time."""
    crew = RayCrew(ray, work, tasks, watch)
    try:
        crew.run(num_workers)
    finally:
        crew.cancel()


class Ear:
    """An actor that hears what tasks tell on all machines, until somebody asks for it."""

    def __init__(self) -> None:
        self._events: list[TaskProgress | LeftOut] = []

    def hear(self, event: TaskProgress | LeftOut) -> None:
        """Keep an event."""
        self._events.append(event)

    def take(self) -> list[TaskProgress | LeftOut]:
        """What was heard since the last time."""
        events, self._events = self._events, []
        return events


def ray_task(work: Work, assignment: Assignment, folder: str, ear: Any) -> Outcome:
    """What a machine of the cluster does: relative paths are those of the folder where it was asked for."""
    import ray

    os.chdir(folder)
    # Waiting for the answer costs a millisecond for a batch: so it is known at which file a worker ended.
    return outcome(work, assignment, lambda event: ray.get(ear.hear.remote(event)))


class RayCrew:
    """The tasks that are running on the cluster, and those that wait."""

    def __init__(self, ray: Any, work: Work, tasks: Sequence[Task], watch: Watch) -> None:
        self._ray, self._watch = ray, watch
        self._remote = ray.remote(max_retries=0)(ray_task)
        self._ear = ray.remote(num_cpus=0)(Ear).remote()
        self._work = ray.put(work)  # in memory that all tasks share, instead of a copy with each
        self._waiting = deque(Assignment(task) for task in tasks)
        self._running: dict[Any, Assignment] = {}
        self._files: dict[int, str] = {}
        """By task: the raw file that it is at."""
        self._chances = SecondChances(work.skips, watch)

    def run(self, most_at_once: int) -> None:
        """Work until nothing is left."""
        while self._waiting or self._running:
            while self._waiting and len(self._running) < most_at_once:
                self._begin(self._waiting.popleft())
            ended, _ = self._ray.wait(list(self._running), timeout=TICK_SECONDS)
            for event in self._ray.get(self._ear.take.remote()):
                self._files[event.task] = event.file
                self._watch.hear(event)
            for reference in ended:
                self._take_in(reference)
            self._watch.check()

    def cancel(self) -> None:
        """Let go of everything, also of what is running."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._ray.kill(self._ear)

    def _begin(self, assignment: Assignment) -> None:
        self._files[assignment.task.number] = assignment.task.files[0].path
        self._running[self._remote.remote(self._work, assignment, os.getcwd(), self._ear)] = assignment
        self._watch.began(assignment.task)

    def _take_in(self, reference: Any) -> None:
        """A task has ended, or its worker has."""
        assignment = self._running.pop(reference)
        try:
            result = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            advice = (str(error).splitlines() or ["Ray gives no reason"])[0]
            ending = f"ended on Ray with {type(error).__name__}"
            again = self._chances.take(assignment, self._files[assignment.task.number], ending, advice)
            self._waiting.appendleft(again)
            return
        if isinstance(result, Failed):
            result.raise_here()
        self._watch.done(result)
