"""A process of its own for a job of the user's code, seen from both ends.

It ends when its parent lets go of it or is no more, also in the middle of its job, and with it the processes that the
user's code began: nobody is left behind by a kill.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NoReturn, Self

import psutil

from penstock.runtime.worker_process import ONE_THREAD

Job = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""What a process does, with two functions: one waits for the parent's next message, one sends it a message."""

TICK_SECONDS = 0.5
"""How often somebody looks whether a process still is there while it tells nothing."""
_MOST_END_SECONDS = 5.0
_START_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from penstock.prep.preparing.crew.worker_process import main; main(int(sys.argv[2]))"
)


class WorkerProcess:
    """The process as its parent sees it."""

    def __init__(self, job: Job, stdout: int | None = None) -> None:
        """`stdout`: a file descriptor for what the user's code prints; else it goes where errors go."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.channel: Any = Connection(ours.detach())
            path = json.dumps([*map(str, sys.path)])
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-c", _START_CODE, path, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                # Never our standard output, which is for what a preparation made.
                stdout=sys.__stderr__ if stdout is None else stdout,
                env={**os.environ, **ONE_THREAD},
                pass_fds=(theirs.fileno(),),
                # In a process group of its own, so that Ctrl-C in a terminal reaches the parent alone.
                process_group=0,
            )
        self.send(job)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def send(self, message: Any) -> None:
        """Tell it something; that it has ended is noticed by whoever listens to it."""
        with suppress(OSError):
            self.channel.send(message)

    def receive(self) -> Any:
        """Its next message; EOFError where it has ended."""
        while not self.channel.poll(TICK_SECONDS):
            if self.is_gone:
                raise EOFError
        return self.channel.recv()

    @property
    def is_gone(self) -> bool:
        """Whether it has ended and everything that it said was heard, also where a child holds the connection open."""
        if self.process.poll() is None:
            return False
        self._end_children()
        return not self.channel.poll()

    def end(self) -> int:
        """Let go of it, which ends it, and wait for its end; gives the exit code, negative for a signal."""
        self.channel.close()
        try:
            return self.process.wait(_MOST_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self._end_children()

    def _end_children(self) -> None:
        """End what is left of its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def advice_after(exit_code: int) -> str:
    """What one can do about a process that has ended in the middle of its job."""
    if exit_code == -signal.SIGKILL:
        return "most often memory has run out: lower preprocessing.num_workers or batch_size, or raise memory.limit"
    if exit_code < 0:
        return "with PYTHONFAULTHANDLER=1 in the environment it tells where it was"
    return "something that extract calls ends the process"


def main(descriptor: int) -> None:
    """What runs in the process: the job that the parent sends."""
    # Ctrl-C reaches the parent, which lets go of this process: an interrupt here is one that the user's code raises.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel: Any = Connection(descriptor)
    os.register_at_fork(after_in_child=channel.close)  # else it would be open as long as a child lives
    with suppress(EOFError, ConnectionError):  # a parent that was stopped may be gone before it said anything
        job: Job = channel.recv()
        messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(channel, messages), daemon=True).start()
        job(messages.get, channel.send)
    _leave()


def _leave() -> NoReturn:
    """End this process, whatever threads it has, and those that it began."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()
    os._exit(0)


def _listen(channel: Any, messages: "queue.SimpleQueue[Any]") -> None:
    """Take in what the parent says; the end of the connection is the end of the process, whatever it is at."""
    while True:
        try:
            messages.put(channel.recv())
        except (EOFError, OSError):
            _leave()
