"""What a worker does: one task after the other, and whatever comes of each goes to its parent."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from penstock.config.errors import PenstockError
from penstock.prep.preparing.one_line import in_one_line
from penstock.prep.preparing.records import TaskRecord
from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.work import LeftOut, TaskProgress, Tell, Work, run_task
from penstock.runtime.worker_process import WorkerError, WorkerStack


@dataclass(frozen=True, slots=True)
class Assignment:
    """Parent to worker: do this."""

    task: Task
    left_out: dict[str, str] = field(default_factory=dict)
    """Files that must not be touched, and why."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Worker to parent: it cannot be done."""

    error: PenstockError | None
    """None: it is a defect, of which there is only the text."""
    summary: str
    stack: str

    @classmethod
    def of(cls, error: Exception) -> "Failed":
        """An error that is being handled, as something that can be sent to another process."""
        if isinstance(error, PenstockError):
            return cls(error, str(error), getattr(error, "stack", "") or traceback.format_exc())
        return cls(None, in_one_line(error), traceback.format_exc())

    def raise_here(self) -> NoReturn:
        """In the parent: the same error, with the stack of the other process as its cause."""
        error = self.error or WorkerError(f"a worker process failed: {self.summary}")
        raise error from WorkerStack(self.stack)


Outcome = TaskRecord | Failed
Message = TaskProgress | LeftOut | Outcome


def do_tasks(work: Work, receive: Callable[[], Any], send: Callable[[Any], None]) -> None:
    """The job of a worker process: until its parent lets go of it."""
    while True:
        send(outcome(work, receive(), send))


def outcome(work: Work, assignment: Assignment, tell: Tell) -> Outcome:
    """What comes of a task, also where it fails."""
    try:
        return run_task(work, assignment.task, tell, assignment.left_out)
    except BrokenPipeError:  # nobody is there to be told
        raise
    except Exception as error:
        return Failed.of(error)
