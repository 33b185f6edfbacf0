"""How a template and its workers come to be."""

import json
import os
import pickle
import socket
import subprocess
import sys
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field

import psutil

from penstock.data.workers.arena import anonymous_file
from penstock.data.workers.channel import Channel
from penstock.data.workers.messages import NotLoaded, Setup, Started, Task
from penstock.data.workers.process import Work
from penstock.runtime.worker_process import NotLoadable, WorkerError, WorkerStack

MOST_START_SECONDS = 300.0
START_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from penstock.data.workers.template import main; main(int(sys.argv[2]))"
)
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Workers are as many as there are cores for them: none of them makes threads of its own."""

_MOST_END_SECONDS = 5.0
"""How long a template may take to end before it is killed."""


@dataclass(slots=True)
class Worker:
    """A worker as its parent sees it."""

    number: int
    process: psutil.Process
    connection: Channel
    stack_file: int
    tasks: deque[Task] = field(default_factory=deque)
    """What it was given and has not answered, in this order."""

    watched_seconds: float = 0.0
    """How long it was waited for since its last answer."""

    memory_bytes: int | None = None
    """Its resident bytes, when they were last looked at."""


@dataclass(frozen=True, slots=True)
class Template:
    """The process that workers are made from, and the connection on which it tells their end."""

    process: "subprocess.Popen[bytes]"
    control: Channel


def start_workers(
    work: Work, num_workers: int, arena: int, arena_bytes: int
) -> tuple[Template, list[Worker]]:
    """Start a template and wait until its workers run; `arena` is the descriptor of the shared memory."""
    pickled = _pickled(work)
    with ExitStack() as on_failure, ExitStack() as at_end:
        ours, theirs = [], []
        for _ in range(num_workers):
            our_end, their_end = socket.socketpair()
            ours.append(on_failure.enter_context(Channel(our_end.detach())))
            theirs.append(their_end.detach())
            at_end.callback(os.close, theirs[-1])
        stacks = []
        for _ in range(num_workers):
            stacks.append(anonymous_file(0))
            on_failure.callback(os.close, stacks[-1])
        template = _start_template((arena, *theirs, *stacks))
        on_failure.callback(end_template, template)
        template.control.send(Setup(pickled, arena, arena_bytes, tuple(theirs), tuple(stacks)))
        processes = _processes(template)
        on_failure.pop_all()
    parts = enumerate(zip(processes, ours, stacks, strict=True))
    return template, [Worker(number, *of_worker) for number, of_worker in parts]


def end_template(template: Template) -> None:
    """Let go of the template, which ends its workers, and wait for its end."""
    template.control.close()
    try:
        template.process.wait(_MOST_END_SECONDS)
    except subprocess.TimeoutExpired:
        template.process.kill()
        template.process.wait()


def _start_template(descriptors: tuple[int, ...]) -> Template:
    our_end, their_end = socket.socketpair()
    with their_end:
        control = Channel(our_end.detach())
        command = [
            sys.executable,
            "-c",
            START_CODE,
            json.dumps([*map(str, sys.path)]),
            str(their_end.fileno()),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
            pass_fds=(their_end.fileno(), *descriptors),
            # In a process group of its own, so that Ctrl-C in a terminal reaches the parent alone.
            process_group=0,
        )
    return Template(process, control)


def _processes(template: Template) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid) for pid in _pids(template)]
    except psutil.NoSuchProcess as error:
        raise WorkerError(f"a worker process (pid {error.pid}) ended as soon as it was started") from None


def _pids(template: Template) -> tuple[int, ...]:
    try:
        if not template.control.poll(MOST_START_SECONDS):
            raise WorkerError(f"worker processes have not started within {MOST_START_SECONDS:.0f} s")
        answer = template.control.recv()
    except (EOFError, OSError):
        code = template.process.wait()
        raise WorkerError(f"worker processes could not start: Python ended with exit code {code}") from None
    if isinstance(answer, NotLoaded):
        raise _unusable(answer.error) from WorkerStack(answer.traceback)
    assert isinstance(answer, Started)
    return answer.pids


def _pickled(work: Work) -> bytes:
    try:
        return pickle.dumps(work, protocol=5)
    except Exception as error:  # any class may refuse in its own way
        raise _unusable(f"{type(error).__name__}: {error}") from error


def _unusable(problem: str) -> NotLoadable:
    return NotLoadable(
        f"worker processes cannot load what they should do ({problem}). Functions and classes must be in a module "
        "that can be imported, not in the program that runs or in a notebook; or set data_config.num_workers: 0"
    )
