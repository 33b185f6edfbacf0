"""The same tasks on a Ray cluster, which a run file chooses with `executor: ray`.

All machines must see the same files under the same paths, and have the module of `extract`. A cluster that is running
is used (RAY_ADDRESS, or one that this program is connected to); else one of this machine's cores is started.
"""

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from penstock.batching.workers.ends import WorkerError, WorkerStack
from penstock.config.errors import ConfigError
from penstock.prep.preparing.crew import TICK_SECONDS, raised
from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import LeftOut, TaskProgress, Work
from penstock.prep.preparing.worker import Assignment, Failed, Outcome, outcome

_QUIET = {"include_dashboard": False, "configure_logging": False, "log_to_driver": False}

logger = logging.getLogger(__name__)


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
    """Do all tasks on a cluster, so many at a time; one whose worker is killed is repeated once."""
    remote = ray.remote(max_retries=0)(ray_task)
    # In memory that all tasks share, instead of a copy with each.
    shared = ray.put(work)
    waiting, killed_once = deque(tasks), set[int]()
    running: dict[Any, Task] = {}
    try:
        while waiting or running:
            while waiting and len(running) < num_workers:
                task = waiting.popleft()
                running[remote.remote(shared, task, os.getcwd())] = task
                watch.began(task)
            for done in ray.wait(list(running), timeout=TICK_SECONDS)[0]:
                task = running.pop(done)
                if not _take_in(ray, done, task, watch, is_last_try=task.number in killed_once):
                    killed_once.add(task.number)
                    waiting.appendleft(task)
                    watch.put_back(task)
            watch.check()
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def ray_task(work: Work, task: Task, folder: str) -> tuple[Outcome, list[LeftOut]]:
    """What a machine of the cluster does: relative paths are those of the folder where it was asked for."""
    os.chdir(folder)
    told: list[LeftOut] = []

    def tell(event: TaskProgress | LeftOut) -> None:
        if isinstance(event, LeftOut):
            told.append(event)

    return outcome(work, Assignment(task), tell), told


def _take_in(ray: Any, reference: Any, task: Task, watch: Watch, is_last_try: bool) -> bool:
    """Hear of a task that ended; False: its worker was killed, and it should be repeated."""
    try:
        result, told = ray.get(reference)
    except ray.exceptions.RayError as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        if is_last_try:
            raise WorkerError(
                f"{task.name}: failed twice on Ray: {type(error).__name__}: {reason}"
            ) from error
        logger.warning("%s: %s on Ray; the task is done once more", task.name, type(error).__name__)
        watch.write("worker_ended", task=task.number, reason=reason)
        return False
    for event in told:
        watch.hear(event)
    if isinstance(result, Failed):
        raise raised(result) from WorkerStack(result.stack)
    watch.done(result)
    return True
