"""A worker process: does one task after the other, and tells its parent how it goes.

It ends when its parent is no more, also in the middle of a task: nobody is left behind by a kill.
"""

import os
import queue
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from penstock.batching.workers.channel import Channel
from penstock.batching.workers.ends import WorkerError, WorkerStack
from penstock.config.errors import PenstockError
from penstock.prep.preparing.records import TaskRecord
from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.work import LeftOut, TaskProgress, Tell, Work, run_task


@dataclass(frozen=True, slots=True)
class Assignment:
    """Parent to worker: do this."""

    task: Task
    left_out: dict[str, str] = field(default_factory=dict)
    """Files that must not be touched, and why."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Worker to parent: the task cannot be done."""

    error: PenstockError | None
    """None: it is a defect, of which there is only the text."""
    summary: str
    stack: str

    def raise_here(self) -> NoReturn:
        """In the parent: the same error, with the stack of the other process as its cause."""
        error = self.error or WorkerError(f"a worker process failed: {self.summary}")
        raise error from WorkerStack(self.stack)


Outcome = TaskRecord | Failed
Message = TaskProgress | LeftOut | Outcome


def main(descriptor: int) -> None:
    """Work until the parent closes the connection."""
    channel = Channel(descriptor)
    with suppress(EOFError, ConnectionError):  # a parent that was stopped may be gone before it said anything
        work: Work = channel.recv()
        assignments: queue.SimpleQueue[Assignment] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(channel, assignments), daemon=True).start()
        while True:
            channel.send(outcome(work, assignments.get(), channel.send))


def _listen(channel: Channel, assignments: "queue.SimpleQueue[Assignment]") -> None:
    """Take in what is to be done; the end of the connection is the end of the process, whatever it is at."""
    while True:
        try:
            assignments.put(channel.recv())
        except (EOFError, OSError):
            os._exit(0)


def outcome(work: Work, assignment: Assignment, tell: Tell) -> Outcome:
    """What comes of a task, also where it fails: something that can be sent to another process."""
    try:
        return run_task(work, assignment.task, tell, assignment.left_out)
    except PenstockError as error:
        return Failed(error, str(error), getattr(error, "stack", "") or traceback.format_exc())
    except BrokenPipeError:
        raise
    except Exception as error:  # told in the parent, where somebody reads it
        return Failed(None, f"{type(error).__name__}: {error}", traceback.format_exc())
