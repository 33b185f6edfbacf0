"""A process for the user's code, from both ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.prep.preparing.crew import worker_process
from penstock.prep.preparing.crew.worker_process import WorkerProcess, advice_after
from tests.prep.preparing.raw import is_running, wait_for_end


@pytest.fixture(autouse=True)
def end_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, an exit code of 0 says that nobody had to kill a process to end it."""
    monkeypatch.setattr(worker_process, "_MOST_END_SECONDS", 120.0)


def add(receive: Callable[[], Any], send: Callable[[Any], None]) -> None:
    """Add the numbers of two messages."""
    send(receive() + receive())


def sleep(receive: Callable[[], Any], send: Callable[[Any], None]) -> None:
    """Never come to an end."""
    del receive
    send("asleep")
    time.sleep(3600)


def fork(receive: Callable[[], Any], send: Callable[[Any], None]) -> None:
    """Leave a child behind that has all that a process has, and be killed."""
    child = os.fork()
    if not child:
        time.sleep(3600)
    send(child)
    receive()
    os.kill(os.getpid(), signal.SIGKILL)


def start(receive: Callable[[], Any], send: Callable[[Any], None]) -> None:
    """Leave a program behind that holds the connection open, and be killed."""
    send(subprocess.Popen(["sleep", "3600"], close_fds=False).pid)
    receive()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_job_and_what_is_said_about_it():
    with WorkerProcess(add) as worker:
        worker.send(1)
        worker.send(2)

        assert worker.channel.recv() == 3
        with pytest.raises(EOFError):
            worker.channel.recv()
    assert worker.process.returncode == 0


def test_it_ends_when_its_parent_lets_go_of_it():
    worker = WorkerProcess(sleep)
    assert worker.channel.recv() == "asleep"

    assert worker.end() == 0


@pytest.mark.parametrize("job", [fork, start])
def test_one_that_is_killed_is_missed_though_a_child_of_it_lives(job: Any):
    with WorkerProcess(job) as worker:
        child = worker.receive()
        assert is_running(child)
        worker.send("now")

        with pytest.raises(EOFError):
            worker.receive()
    assert worker.process.returncode == -signal.SIGKILL
    wait_for_end(child)


@pytest.mark.parametrize("job", [fork, start])
def test_its_children_end_with_it(job: Any):
    with WorkerProcess(job) as worker:
        child = worker.receive()

    assert worker.process.returncode == 0
    wait_for_end(child)


WITHOUT_A_PARENT = """
import socket
from penstock.prep.preparing.crew.worker_process import main

ours, theirs = socket.socketpair()
ours.close()
main(theirs.detach())
"""


def test_one_whose_parent_is_gone_before_it_began_ends_without_a_word():
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_PARENT], capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_one_can_do():
    assert advice_after(-signal.SIGKILL).startswith("most often memory has run out: ")
    assert advice_after(-signal.SIGSEGV).startswith("with PYTHONFAULTHANDLER=1 ")
    assert advice_after(3) == "something that extract calls ends the process"
