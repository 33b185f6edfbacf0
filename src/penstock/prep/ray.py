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
from penstock.prep.tasks import PrepTask, TaskContext, TaskRecord, run_task
from penstock.prep.watch import Watch
from penstock.runtime.worker_process import Failure
from penstock.runtime.workers import TICK_SECONDS


@contextmanager
def cluster() -> Iterator[Any]:
    """A connection to a cluster; one that was there before stays."""
    try:
        ray = import_module("ray")
    except ModuleNotFoundError as error:
        problem = "ray needs the library: pip install 'penstock[ray]'; or set executor: local"
        raise ConfigError.at("preprocessing.executor", problem) from error
    if ray.is_initialized():
        yield ray
        return
    ray.init(include_dashboard=False, configure_logging=False, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()


def _ray_task(context: TaskContext, task: PrepTask, folder: str, events: Any) -> TaskRecord | Failure:
    """What a machine of the cluster does: relative paths are those of the folder where it was asked for."""
    os.chdir(folder)
    try:
        # Waiting for the answer costs a millisecond for a batch: so it is known at which file a worker died.
        return run_task(context, task, events.put)
    except Exception as error:
        return Failure.of(error)


def run_on_ray(
    ray: Any, max_at_once: int, context: TaskContext, tasks: Sequence[PrepTask], watch: Watch
) -> None:
    remote = ray.remote(max_retries=0)(_ray_task)
    events = import_module("ray.util.queue").Queue(actor_options={"num_cpus": 0})
    shared = ray.put(context)  # in memory that all tasks share, instead of a copy with each
    waiting, running = deque(tasks), dict[Any, PrepTask]()
    try:
        while waiting or running:
            while waiting and len(running) < max_at_once:
                task = waiting.popleft()
                running[remote.remote(shared, task, os.getcwd(), events)] = task
                watch.started(task)
            ended, _ = ray.wait(list(running), timeout=TICK_SECONDS)
            for event in events.get_nowait_batch(events.qsize()):
                watch.on_event(event)
            for reference in ended:
                task = running.pop(reference)
                try:
                    result = ray.get(reference)
                except ray.exceptions.RayError as error:
                    advice = (str(error).splitlines() or ["Ray gives no reason"])[0]
                    ending = f"ended on Ray with {type(error).__name__}"
                    waiting.appendleft(watch.retried(task, ending, advice))
                    continue
                if isinstance(result, Failure):
                    result.raise_here()
                watch.done(result)
            watch.tick()
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        events.shutdown(force=True)
