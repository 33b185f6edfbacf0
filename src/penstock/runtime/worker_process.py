"""A worker process: how it starts, and what it does until its parent closes the connection.

It comes from multiprocessing's fork server, so it inherits no thread and no lock of its parent, and it does not run the
caller's script again: scripts need no `__main__` guard, and notebooks work.
"""

import faulthandler
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any, NoReturn

import psutil

from penstock.config.errors import PenstockError

Send = Callable[[Any], None]
"""Sends an event of a running task to the parent."""
STACK_SIGNAL = signal.SIGUSR1
"""Asks a worker to write its stack, whatever it is doing."""
# There are as many workers as cores: none of them starts threads for itself.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
_MAX_ERROR_BYTES = 64 * 1024
_start_lock = threading.Lock()


class WorkerError(PenstockError):
    """A worker process was killed, hangs, or could not start."""


class WorkerStack(Exception):
    """The stack of a worker, as the cause of an error that is raised in the parent."""

    def __init__(self, stack: str) -> None:
        super().__init__(f"in a worker process:\n\n{stack}")


def start_process(stdout: int) -> tuple[Any, Any, int]:
    """A process that waits for a pickled function and tasks; gives it, our connection, and the file of its stack."""
    context = get_context("forkserver")
    ours, theirs = context.Pipe()
    stack_file = os.memfd_create("stack")
    # Descriptors go to a new process as connections do.
    files = [Connection(os.dup(descriptor)) for descriptor in (stdout, 2, stack_file)]
    process = context.Process(target=_serve, args=(theirs, {**os.environ, **_ONE_THREAD}, *files))
    with theirs, files[0], files[1], files[2], _start_lock:
        # With an empty __main__, multiprocessing finds no script that the new process would have to run again.
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            process.start()
        finally:
            sys.modules["__main__"] = main
    return process, ours, stack_file


def innermost(stack: str) -> str:
    """The line of a stack by faulthandler that says where its main thread is; empty where there is none."""
    lines = stack.splitlines()
    for first in ("Current thread", "Thread"):
        for index, line in enumerate(lines[:-1]):
            if line.startswith(first):
                return lines[index + 1].strip().replace('File "', "").replace('"', "", 1)
    return ""


def not_loadable(problem: str, cure: str) -> WorkerError:
    """The error of a function that workers cannot import; `cure` says how to do without them."""
    return WorkerError(
        f"worker processes cannot load what they should do ({problem}). Functions and classes must be in a module "
        f"that can be imported, not in the program that runs or in a notebook; {cure}"
    )


@dataclass(frozen=True, slots=True)
class Failure:
    error: bytes | None
    """Pickled; None where it cannot be."""
    summary: str
    stack: str

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # noqa: S301
        except Exception:  # any class may refuse in its own way
            pickled = b""
        is_usable = 0 < len(pickled) <= _MAX_ERROR_BYTES
        summary, stack = f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))
        return cls(pickled if is_usable else None, summary[:_MAX_ERROR_BYTES], stack[-_MAX_ERROR_BYTES:])

    def raise_here(self) -> NoReturn:
        """The same error in the parent, with the worker's stack as its cause."""
        cause = WorkerStack(self.stack)
        if self.error is None:
            raise WorkerError(f"a worker process failed: {' '.join(self.summary.split())}") from cause
        raise pickle.loads(self.error) from cause  # noqa: S301  (from our own process, never from a file)


def _serve(
    channel: Any, environment: Mapping[str, str], stdout: Connection, stderr: Connection, stack: Connection
) -> None:
    # Ctrl-C is for the parent, which closes the connection. A group of its own, to end what the user's code starts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)  # the fork server has those of its own start
    for given, number in ((stdout, 1), (stderr, 2)):
        os.dup2(given.fileno(), number)
        given.close()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for number in (channel.fileno(), stack.fileno()):
        os.set_inheritable(number, False)
    faulthandler.enable(stack.fileno())
    faulthandler.register(STACK_SIGNAL, stack.fileno(), all_threads=True)
    os.register_at_fork(after_in_child=channel.close)  # else it would stay open as long as a child lives
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        """The end of the connection is the end of the process, whatever it is doing."""
        while True:
            try:
                tasks.put(channel.recv_bytes())
            except (EOFError, OSError):
                _leave()

    def send(kind: str, content: Any) -> None:
        channel.send_bytes(pickle.dumps((kind, content), protocol=5))

    with suppress(EOFError, ConnectionError):
        send("ready", None)
        try:
            function = pickle.loads(channel.recv_bytes())  # noqa: S301  (from our parent, never from a file)
        except Exception as error:  # any module of the user's may fail in its own way
            send("not loadable", Failure.of(error))
            _leave()
        threading.Thread(target=listen, daemon=True).start()
        while True:
            task = tasks.get()
            try:
                result = function(pickle.loads(task), lambda event: send("event", event))  # noqa: S301
                outcome = pickle.dumps(("done", result), protocol=5)
            except BrokenPipeError:  # the parent is gone
                raise
            except Exception as error:
                outcome = pickle.dumps(("failed", Failure.of(error)))
            channel.send_bytes(outcome)
    _leave()


def _leave() -> NoReturn:
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    os._exit(0)
