"""Workers with their shared memory: batches in, results out, every failure an error that one can read."""

import logging
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import psutil
import pyarrow as pa

from penstock.config.sizes import format_size
from penstock.data.workers import ends
from penstock.data.workers.arena import Region, Regions
from penstock.data.workers.messages import Done, Failed, Reply, Task, TooLarge
from penstock.data.workers.patience import Durations, Patience
from penstock.data.workers.pool import TICK_SECONDS, Pool, WorkerEnded
from penstock.data.workers.process import Work
from penstock.data.workers.room import ResultRoom
from penstock.data.workers.starting import Worker
from penstock.data.workers.transport import batch_bytes, read_batch, read_result, use_result, write_batch
from penstock.runtime.budget import Share
from penstock.runtime.worker_process import WorkerError, WorkerStack

Finish = Callable[[Any, pa.RecordBatch], Any]
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Parcel:
    """A batch that was handed to a worker."""

    task: Task
    reply: Reply | None = None
    unwanted: bool = False
    """Nobody waits for it any more; its memory is free once its worker is done with it."""


class Crew:
    """Workers that run, and the memory of what they have in hand, leased from a share."""

    def __init__(
        self, work: Work, num_workers: int, share: Share, patience: Patience, file_paths: Sequence[str]
    ) -> None:
        self._work, self._share, self._patience, self._file_paths = work, share, patience, file_paths
        self._pool = Pool(work, num_workers, share.limit_bytes)
        self._regions = Regions(share.limit_bytes)
        self._room = ResultRoom(share.limit_bytes // self._pool.most_tasks)
        self._durations = Durations()
        self._parcels: dict[int, Parcel] = {}
        self._next_number = 0
        self._told_no_room = False

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.process.pid for worker in self._pool.workers]

    @property
    def idle(self) -> bool:
        """Whether no worker has anything to do."""
        return self._pool.num_tasks == 0

    def take(self, batch: pa.RecordBatch) -> Parcel | None:
        """Hand a batch to a worker; None while there is no room for it and its result."""
        worker = self._pool.free_worker()
        if worker is None:
            return None
        num_bytes = batch_bytes(batch)
        if num_bytes >= self._regions.num_bytes:
            return None
        wanted_bytes = num_bytes + self._room.for_result_of(num_bytes)
        region = self._regions.take(min(wanted_bytes, self._regions.num_bytes))
        if region is None:
            return None
        self._share.acquire(region.num_bytes)
        write_batch(batch, self._memory(region))
        parcel = Parcel(Task(self._next_number, region, num_bytes))
        self._parcels[self._next_number] = parcel
        self._next_number += 1
        self._pool.give(worker, parcel.task)
        return parcel

    def hear(self, wait_seconds: float = TICK_SECONDS) -> None:
        """Take in the answers that are there, or come within this time. WorkerError: a worker ended, or hangs."""
        try:
            for reply in self._pool.hear(wait_seconds):
                self._take_in(reply)
        except WorkerEnded as ended:
            self._raise_end(ended)
        for worker in self._pool.workers:
            if self._durations.too_long(worker.watched_seconds, self._patience):
                self._raise_hanging(worker)

    def open(self, parcel: Parcel, finish: Finish | None) -> Any:
        """What came out of a batch; its memory is free afterwards."""
        region = self._memory(parcel.task.region)
        try:
            if isinstance(parcel.reply, Failed):
                _raise_failed(parcel.reply)
            if isinstance(parcel.reply, Done):
                spans = parcel.reply.spans
                return read_result(region, spans) if finish is None else use_result(region, spans, finish)
            return self._done_here(parcel, finish)
        finally:
            self._free(parcel)

    def drop(self, parcel: Parcel) -> None:
        """Nobody waits for a batch any more."""
        parcel.unwanted = True
        if parcel.reply is not None:
            self._free(parcel)

    def close(self) -> None:
        """End the workers, and give all memory back."""
        self._pool.close()
        for parcel in [*self._parcels.values()]:
            self._free(parcel)

    def _memory(self, region: Region) -> memoryview:
        return self._pool.arena[region.offset : region.offset + region.num_bytes]

    def _free(self, parcel: Parcel) -> None:
        del self._parcels[parcel.task.number]
        self._regions.give_back(parcel.task.region)
        self._share.release(parcel.task.region.num_bytes)

    def _take_in(self, reply: Reply) -> None:
        parcel = self._parcels[reply.number]
        parcel.reply = reply
        if isinstance(reply, Done):
            self._durations.add(reply.seconds)
            end = max(span.begin + span.num_bytes for span in reply.spans)
            self._room.learn(parcel.task.batch_bytes, end - parcel.task.batch_bytes)
        elif isinstance(reply, TooLarge):
            self._room.learn(parcel.task.batch_bytes, reply.needed_bytes - parcel.task.batch_bytes)
            if reply.needed_bytes > self._regions.num_bytes:
                self.tell_no_room()
        if parcel.unwanted:
            self._free(parcel)

    def _done_here(self, parcel: Parcel, finish: Finish | None) -> Any:
        """The result had no room beside its batch: it is made once more, in this process, from a copy."""
        copied = bytes(self._memory(parcel.task.region)[: parcel.task.batch_bytes])
        return self.do_here(read_batch(memoryview(copied)), finish)

    def do_here(self, batch: pa.RecordBatch, finish: Finish | None) -> Any:
        """Do a worker's work in this process."""
        result = self._work.function(batch)
        return result if finish is None else finish(result, batch)

    def tell_no_room(self) -> None:
        """Say once that batches are too large for the workers."""
        if not self._told_no_room:
            self._told_no_room = True
            _logger.warning(
                "a batch with its result is larger than the %s that workers share; such batches are parsed in the "
                "training process. Lower data_config.batch_size, or raise memory.limit",
                format_size(self._share.limit_bytes),
            )

    def _raise_end(self, ended: WorkerEnded) -> NoReturn:
        oom_kills = self._pool.new_oom_kills()
        if ended.worker is None:
            raise ends.template_killed(ended.exit_code, oom_kills)
        facts = self._facts(ended.worker, self._pool.stack_of(ended.worker, ask=False))
        raise ends.killed(facts, ended.exit_code, oom_kills) from facts.cause

    def _raise_hanging(self, worker: Worker) -> NoReturn:
        facts = self._facts(worker, self._pool.stack_of(worker, ask=True))
        try:
            status = str(worker.process.status())
        except psutil.Error:
            status = "unknown"
        seconds, median_seconds = worker.watched_seconds, self._durations.median_seconds
        raise ends.hangs(facts, seconds, median_seconds, status) from facts.cause

    def _facts(self, worker: Worker, stack: str) -> ends.WorkerFacts:
        rows = "nothing to do"
        if worker.tasks:
            rows = ends.rows_of(read_batch(self._memory(worker.tasks[0].region)), self._file_paths)
        return ends.WorkerFacts(worker.number, worker.process.pid, rows, worker.memory_bytes, stack)


def _raise_failed(failed: Failed) -> NoReturn:
    """Raise in this process what was raised in a worker, with the stack it had there."""
    cause = WorkerStack(failed.traceback)
    if failed.error is None:
        raise WorkerError(f"a worker process failed: {failed.summary}") from cause
    # Written by a process of our own a moment ago, never by a file.
    raise pickle.loads(failed.error) from cause  # noqa: S301
