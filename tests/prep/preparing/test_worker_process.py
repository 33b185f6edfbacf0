"""A process for the user's code, from both ends."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.prep.preparing.worker_process import WorkerProcess, advice_after


def add(receive: Callable[[], Any], send: Callable[[Any], None]) -> None:
    """Add the numbers of two messages."""
    send(receive() + receive())


def sleep(receive: Callable[[], Any], send: Callable[[Any], None]) -> None:
    """Never come to an end."""
    del receive
    send("asleep")
    time.sleep(3600)


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

    began_at = time.monotonic()

    assert worker.end() == 0
    assert time.monotonic() - began_at < 4


WITHOUT_A_PARENT = """
import socket
from penstock.prep.preparing.worker_process import main

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
