"""The worker pool."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.config.sizes import MIB
from penstock.runtime import workers
from penstock.runtime.memory import tree_bytes
from penstock.runtime.worker_process import Send, WorkerError, innermost
from penstock.runtime.workers import PoolSize, Supervisor, WorkerPool, map_in_threads
from tests.waiting import wait_until


def square(task: int, send: Send) -> int:
    del send
    return task * task


def slow_first(task: int, send: Send) -> int:
    """The first task ends last."""
    time.sleep(0.5 if task == 0 else 0.0)
    return square(task, send)


def hangs(gate: str, task: int, send: Send) -> int:
    send("here")
    while not os.path.exists(gate):
        time.sleep(0.01)
    return task


def starts_a_program(task: int, send: Send) -> None:
    """Leaves a program that holds all descriptors, and waits."""
    send(subprocess.Popen(["sleep", "3600"], close_fds=False).pid)
    if task == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(3600)


def surroundings(task: int, send: Send) -> tuple[str, str, str | None, list[str]]:
    return os.getcwd(), sys.path[0], os.environ.get("LATE"), [*sys.argv]


def holds(num_bytes: int, task: int, send: Send) -> int:
    held = bytearray(num_bytes)
    send("settled")
    time.sleep(0.3)
    return len(held)


class Recorder(Supervisor[int]):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.lines: list[str] = []
        self.hanging: list[tuple[int, float, str]] = []
        self.too_much = False

    def received(self, task: int, event: Any) -> bool:
        self.events.append((task, event))
        return event in ("settled", "here")

    def hangs(self, task: int, name: str, seconds: float, longest_seconds: float, stack: str) -> None:
        self.hanging.append((task, seconds, innermost(stack)))

    def takes_too_much(self) -> bool:
        return self.too_much

    def printed(self, line: str) -> None:
        self.lines.append(line)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_results_come_in_order_or_as_they_are_done():
    with WorkerPool(slow_first, 2) as pool:
        assert list(pool.run(range(6), ordered=True)) == [(task, task * task) for task in range(6)]
        as_they_come = [task for task, _ in pool.run(range(6))]
    assert sorted(as_they_come) == [*range(6)]
    assert as_they_come[0] != 0
    assert [*map_in_threads(abs, [-3, -2, -1], 2)] == [3, 2, 1]


def test_tasks_are_taken_when_a_worker_is_free():
    taken = []

    def tasks() -> Iterator[int]:
        for task in range(100):
            taken.append(task)
            yield task

    with WorkerPool(square, 2) as pool:
        results = pool.run(tasks(), ordered=True)
        assert [next(results), next(results)] == [(0, 0), (1, 1)]
        assert len(taken) <= 2 + 2 * 2 + 1
        pids = pool.pids
        results.close()  # type: ignore[attr-defined]
        assert {pid for pid in pids if alive(pid)} == {*pool.pids}, "busy ones are ended"
        assert [result for _, result in pool.run([3])] == [9]


def test_a_hanging_worker_is_reported_with_its_place_and_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workers, "_HANG_FACTOR", 0)  # its start is not to count
    recorder = Recorder()

    def reports() -> list[tuple[int, float, str]]:
        return [report for report in recorder.hanging if report[2].endswith("in hangs")]

    def open_the_gate_after_two() -> None:
        if len(reports()) == 2:
            (tmp_path / "gate").touch()

    recorder.tick = open_the_gate_after_two  # type: ignore[method-assign]
    with WorkerPool(partial(hangs, str(tmp_path / "gate")), 1, recorder, hang_seconds=0.1) as pool:
        assert list(pool.run([7])) == [(7, 7)]

    (task, first, _), (_, second, _) = reports()
    assert task == 7
    assert second > 2 * first


def test_what_workers_start_ends_with_them():
    recorder = Recorder()
    with WorkerPool(starts_a_program, 1, recorder) as pool, pytest.raises(WorkerError):
        list(pool.run([0]))
    waiting = Recorder()
    with WorkerPool(starts_a_program, 1, waiting) as pool:
        waiting.tick = partial(_stop_when, waiting.events)  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            list(pool.run([1]))

    programs = [pid for _, pid in recorder.events + waiting.events]
    assert len(programs) == 3
    wait_until(lambda: not any(alive(pid) for pid in programs))


def _stop_when(events: list[Any]) -> None:
    if events:
        raise KeyboardInterrupt


def test_workers_see_folder_path_and_environment_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("LATE", "yes")
    with WorkerPool(surroundings, 1) as pool:
        [(_, (folder, path, late, _))] = pool.run([1])
    assert (folder, path, late) == (str(tmp_path), str(tmp_path), "yes")


SCRIPT = """
from penstock.runtime.workers import WorkerPool
from tests.runtime.test_workers import square
print("started", flush=True)
with WorkerPool(square, 2) as pool:
    for task, result in pool.run([1, 2], ordered=True):
        print(result, flush=True)
"""
ROOT = Path(__file__).parents[2]


def test_a_script_needs_no_guard(tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )

    assert (done.stdout, done.stderr) == ("started\n1\n4\n", "")


def test_workers_are_added_while_memory_allows(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    recorder, gate = Recorder(), tmp_path / "gate"
    size = PoolSize(1, 3, tree_bytes() + 2000 * MIB, "my.workers")
    with WorkerPool(partial(hangs, str(gate)), size, recorder) as pool:
        recorder.tick = lambda: gate.touch() if pool.max_running == 3 else None  # type: ignore[method-assign]
        assert len(list(pool.run(range(5)))) == 5
    assert caplog.messages == []

    with WorkerPool(square, PoolSize(1, 3, 16 * MIB, "my.workers")) as pool:
        assert len(list(pool.run(range(5)))) == 5
        assert pool.max_running == 1
    [message] = caplog.messages
    assert message.startswith(
        "my.workers: going on with 1 of 3 worker processes, since memory.limit is 16MiB and "
    )


def test_a_worker_is_given_up_when_all_take_too_much(caplog: pytest.LogCaptureFixture):
    recorder = Recorder()

    def once_both_hold() -> None:
        recorder.too_much = len(recorder.events) == 2

    recorder.tick = once_both_hold  # type: ignore[method-assign]
    with WorkerPool(partial(holds, MIB), 2, recorder) as pool:
        assert len(list(pool.run(range(4)))) == 4
        assert (pool.max_running, pool.size.max) == (2, 1)
    [message] = caplog.messages
    assert "going on with 1 of 2 worker processes" in message
