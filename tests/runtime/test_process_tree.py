"""Who belongs to a process: children and theirs, started by whichever thread."""

import os
import subprocess
import sys
import threading

import psutil
import pytest

from penstock.runtime import process_tree as module
from penstock.runtime.process_tree import process_tree

PARENT = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=sys.stdin); "
    "print(child.pid, flush=True); child.wait()"
)


@pytest.fixture
def family():
    """A child that a thread of its own started, and a grandchild; gives their ids."""
    started: list[subprocess.Popen] = []
    ended = threading.Event()

    def start() -> None:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        grandchildren.append(int(started[0].stdout.readline()))
        ready.set()
        ended.wait()

    grandchildren: list[int] = []
    ready = threading.Event()
    thread = threading.Thread(target=start)
    thread.start()
    assert ready.wait(120)
    yield {started[0].pid, grandchildren[0]}
    started[0].stdin.close()
    started[0].wait()
    started[0].stdout.close()
    ended.set()
    thread.join()


def test_children_of_children_belong_to_it_whichever_thread_started_them(family):
    tree = process_tree(psutil.Process())

    assert tree[0].pid == os.getpid()
    assert family <= {process.pid for process in tree}


def test_a_kernel_that_does_not_tell_children_is_asked_otherwise(family, monkeypatch):
    def missing(pid: int) -> list[int]:
        raise FileNotFoundError(pid)

    monkeypatch.setattr(module, "_descendants", missing)

    assert family <= {process.pid for process in process_tree(psutil.Process())}
