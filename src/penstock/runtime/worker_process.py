"""A worker process: how it starts, what it does until its parent lets go of it, and how it ended.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import psutil

from penstock.config.errors import PenstockError

Send = Callable[[Any], None]
"""Sends an event of a running task to the parent."""
STACK_SIGNAL = signal.SIGUSR1
"""Asks a worker to write its stack, whatever it is doing."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""There are as many workers as cores: none of them starts threads for itself."""
_MAX_ERROR_BYTES = 64 * 1024


class WorkerError(PenstockError):
    """A worker process was killed, hangs, or could not start."""


class NotLoadable(WorkerError):
    """The function of a pool cannot be imported or pickled."""


class WorkerStack(Exception):
    """The stack of a worker, as the cause of an error that is raised in the parent."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f"in a worker process:\n\n{self.text}"


class _Descriptor:
    """A file descriptor that goes to a new process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (DupFd(self.number),)


def _received(descriptor: Any) -> _Descriptor:
    return _Descriptor(descriptor.detach())


_start_lock = threading.Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """multiprocessing finds no script that a new process would have to run again."""
    with _start_lock:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def start_process(stdout: int) -> tuple[Any, Any, int]:
    """A process that waits for a pickled function and tasks; gives it, our connection, and the file of its stack."""
    context = get_context("forkserver")
    ours, theirs = context.Pipe()
    stack_file = os.memfd_create("stack")
    descriptors = tuple(_Descriptor(fd) for fd in (stdout, 2, stack_file))
    environment = {**os.environ, **ONE_THREAD}
    process = context.Process(target=_serve, args=(theirs, environment, *descriptors))
    with theirs, _without_main():
        process.start()
    return process, ours, stack_file


def how_ended(exit_code: int | None) -> str:
    """What a process did, as in "a worker process ..."; None where it is not known."""
    if exit_code is None:
        return "is gone, its signal is not known,"
    if exit_code >= 0:
        return f"ended itself with exit code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was killed by signal {-exit_code}"


def innermost(stack: str) -> str:
    """The line of a stack by faulthandler that says where its main thread is; empty where there is none."""
    lines = stack.splitlines()
    for first in ("Current thread", "Thread"):
        for index, line in enumerate(lines[:-1]):
            if line.startswith(first):
                return lines[index + 1].strip().replace('File "', "").replace('"', "", 1)
    return ""


def oom_kills_so_far(
    own_cgroups: Path = Path("/proc/self/cgroup"), cgroups: Path = Path("/sys/fs/cgroup")
) -> int:
    """How many processes of this container the kernel has killed for want of memory; 0 where it is not known."""
    # Where a container sees them at its root; before that, by the process's own path in version 2 or 1.
    files = [cgroups / "memory.events", cgroups / "memory" / "memory.oom_control"]
    with suppress(OSError):
        for line in reversed(own_cgroups.read_text().splitlines()):
            _, controllers, path = line.split(":", 2)
            if not controllers:
                files.insert(0, cgroups / path.lstrip("/") / "memory.events")
            elif "memory" in controllers.split(","):
                files.insert(0, cgroups / "memory" / path.lstrip("/") / "memory.oom_control")
    for file in files:
        with suppress(OSError, ValueError, KeyError):
            return int(dict(line.split() for line in file.read_text().splitlines())["oom_kill"])
    return 0


def pickled_function(function: Any, cure: str) -> bytes:
    """Refuses what no other process could load; `cure` says how to do without."""
    try:
        return pickle.dumps(function, protocol=5)
    except Exception as error:  # any class may refuse in its own way
        raise not_loadable(f"{type(error).__name__}: {error}", cure) from error


def not_loadable(problem: str, cure: str) -> NotLoadable:
    """The error of a function that workers cannot import."""
    return NotLoadable(
        f"worker processes cannot load what they should do ({problem}). Functions and classes must be in a module "
        f"that can be imported, not in the program that runs or in a notebook; {cure}"
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """An error on its way from a worker to its parent."""

    error: bytes | None
    """Pickled; None where it cannot be."""
    summary: str
    stack: str

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """The error that is being handled."""
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
    channel: Any,
    environment: Mapping[str, str],
    stdout: _Descriptor,
    stderr: _Descriptor,
    stack: _Descriptor,
) -> None:
    """What a worker does until its parent closes the connection or is gone."""
    # Ctrl-C is for the parent, which closes the connection. A group of its own, to end what the user's code starts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)  # the fork server has those of its own start
    for descriptor, number in ((stdout, 1), (stderr, 2)):
        os.dup2(descriptor.number, number)
        os.close(descriptor.number)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for number in (channel.fileno(), stack.number):
        os.set_inheritable(number, False)
    faulthandler.enable(stack.number)
    faulthandler.register(STACK_SIGNAL, stack.number, all_threads=True)
    os.register_at_fork(after_in_child=channel.close)  # else it would stay open as long as a child lives
    with suppress(EOFError, ConnectionError):
        channel.send_bytes(pickle.dumps(("ready", None)))
        try:
            function = pickle.loads(channel.recv_bytes())  # noqa: S301  (from our parent, never from a file)
        except Exception as error:  # any module of the user's may fail in its own way
            channel.send_bytes(pickle.dumps(("not loadable", Failure.of(error))))
            _leave()
        tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(channel, tasks), daemon=True).start()
        while True:
            channel.send_bytes(_outcome(function, tasks.get(), channel))
    _leave()


def _outcome(function: Callable[[Any, Send], Any], task: bytes, channel: Any) -> bytes:
    def send(event: Any) -> None:
        channel.send_bytes(pickle.dumps(("event", event), protocol=5))

    try:
        result = function(pickle.loads(task), send)  # noqa: S301
        return pickle.dumps(("done", result), protocol=5)
    except BrokenPipeError:  # the parent is gone
        raise
    except Exception as error:
        return pickle.dumps(("failed", Failure.of(error)))


def _listen(channel: Any, tasks: "queue.SimpleQueue[bytes]") -> None:
    """The end of the connection is the end of the process, whatever it is doing."""
    while True:
        try:
            tasks.put(channel.recv_bytes())
        except (EOFError, OSError):
            _leave()


def _leave() -> NoReturn:
    """Ends this process and those that it started, whatever threads it has."""
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    os._exit(0)
