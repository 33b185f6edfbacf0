"""A process that does tasks of a merge.

It is a fresh interpreter: the program that merges is not imported again. It reads what to do from its standard input
and answers on its standard output, and ends when its parent does.
"""

import json
import pickle
import signal
import subprocess
import sys
from typing import Any, BinaryIO

from penstock.config.errors import PenstockError
from penstock.store.merge.layouts.targets import PartChecksums
from penstock.store.merge.moving.tasks import Task, Work

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from penstock.store.merge.moving.workers import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)


class Worker:
    """The process as its parent sees it; it does one task at a time."""

    def __init__(self, work: Work) -> None:
        command = [sys.executable, "-c", _START, json.dumps(sys.path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._send(work)

    def run(self, task: Task) -> PartChecksums:
        """Wait for a task; an error in it is raised here."""
        self._send(task)
        try:
            answer = pickle.load(self._pipe(self._process.stdout))  # noqa: S301
        except EOFError:
            raise self._dead() from None
        if isinstance(answer, BaseException):
            raise answer
        checksums: PartChecksums = answer
        return checksums

    def end(self) -> None:
        """Kill it if it is still there; what it was doing is done again by the next merge."""
        self._process.kill()
        self._process.communicate()

    def _send(self, message: Any) -> None:
        stream = self._pipe(self._process.stdin)
        try:
            pickle.dump(message, stream)
            stream.flush()
        except BrokenPipeError:
            raise self._dead() from None

    def _dead(self) -> PenstockError:
        code = self._process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return PenstockError(f"a process of the merge {how}; merge again: it goes on with what is done")

    @staticmethod
    def _pipe(stream: Any) -> BinaryIO:
        pipe: BinaryIO = stream
        return pipe


def serve(tasks: BinaryIO, answers: BinaryIO) -> None:
    """What a worker does until its parent closes the connection or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    try:
        # From the parent, a moment ago, and never from a file.
        work: Work = pickle.load(tasks)  # noqa: S301
        while True:
            _answer(work, pickle.load(tasks), answers)  # noqa: S301
    except (EOFError, BrokenPipeError):
        return


def _answer(work: Work, task: Task, answers: BinaryIO) -> None:
    try:
        answer: Any = work.run(task)
    except (PenstockError, OSError) as error:  # others are bugs, and end the process with their trace
        answer = error
    pickle.dump(answer, answers)
    answers.flush()
