"""What becomes of a task whose worker ended in the middle of it: another does it once more, since memory may have been
short for a moment; a file at which two have ended is to blame."""

import logging

from penstock.prep.preparing.crew.worker import Assignment
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import LeftOut
from penstock.runtime.worker_process import WorkerError

logger = logging.getLogger(__name__)


class SecondChances:
    """Remembers the files at which a worker ended."""

    def __init__(self, skips: bool, watch: Watch) -> None:
        self._skips, self._watch = skips, watch
        self._ended_at: set[str] = set()

    def take(self, assignment: Assignment, file: str, ending: str, advice: str) -> Assignment:
        """The task again: as it was, or without the file where such files are left out; else an error.

        `ending` says what the worker process did, `advice` what one can do about it.
        """
        task = assignment.task
        told = f"{file}: a worker process {ending} at this file"
        self._watch.put_back(task)
        self._watch.write("worker_ended", task=task.number, file=file, reason=ending)
        if file not in self._ended_at:
            self._ended_at.add(file)
            logger.warning("%s; it is tried once more", told)
            return assignment
        reason = f"{told} for the second time; {advice}"
        if not self._skips:
            raise WorkerError(reason)
        self._watch.hear(LeftOut(task.number, file, reason, ""))
        return Assignment(task, {**assignment.left_out, file: reason})
