"""The bytes there are, and those that the process tree takes: of children too, and in which stage."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from penstock.config.sizes import MIB
from penstock.runtime import memory
from penstock.runtime.memory import MemoryMonitor, memory_of_machine, process_tree, tree_bytes
from tests.waiting import wait_until


def test_the_peak_belongs_to_the_stage_that_took_it():
    with MemoryMonitor(limit_bytes=1 << 40, interval_seconds=0.01) as monitor:
        peaks = monitor.report.stage_peaks
        with monitor.stage("small"):
            wait_until(lambda: "small" in peaks)
        with monitor.stage("large"):
            block = bytearray(96 * MIB)
            wait_until(lambda: peaks.get("large", 0) > peaks["small"] + 64 * MIB)
            del block

    assert monitor.report.peak_stage == "large"


def test_what_was_there_for_a_moment_counts_too():
    program = """
from penstock.config.sizes import MIB
from penstock.runtime.memory import MemoryMonitor

with MemoryMonitor(limit_bytes=1 << 40, interval_seconds=None) as monitor:
    with monitor.stage("large"):
        bytearray(192 * MIB)
    with monitor.stage("small"):
        bytearray(96 * MIB)
report = monitor.report
assert report.peak_stage == "large", report
assert report.peak_bytes - report.start_bytes > 128 * MIB, report
assert report.stage_peaks["small"] - report.start_bytes < 64 * MIB, report
"""
    # In a process of its own: this one may have taken more before.
    subprocess.run([sys.executable, "-c", program], check=True)


@contextmanager
def child(program: str) -> Iterator[tuple[int, int]]:
    """A process that runs a program, prints a number, and waits; gives its id and the number."""
    waiting = f"import sys, subprocess; {program}; print(number, flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", waiting]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.communicate()


def test_children_count_but_those_that_were_there_before_are_not_told_as_started():
    alone = tree_bytes()
    with child("number = len(block := bytearray(96 << 20))"):
        assert tree_bytes() - alone > 64 * MIB
        with MemoryMonitor(limit_bytes=1, interval_seconds=None) as monitor:
            pass

    assert monitor.report.started_peak_bytes < 32 * MIB


def test_near_the_limit_the_process_gives_back_what_it_can():
    calls: list[str] = []
    with (
        MemoryMonitor(1 << 40, 0.01, relieve=lambda: calls.append("far")),
        MemoryMonitor(tree_bytes(), 0.01, relieve=lambda: calls.append("near")),
    ):
        wait_until(lambda: bool(calls))

    assert {*calls} == {"near"}


@pytest.mark.parametrize(("limit_bytes", "is_near"), [(1, True), (1 << 40, False)])
def test_pages_are_told_apart_only_near_the_limit(
    monkeypatch: pytest.MonkeyPatch, limit_bytes: int, is_near: bool
):
    """That walks all pages of all processes; a thread asks five times a second."""
    told_apart: list[int] = []
    tell = memory.process_bytes

    def noted(process: psutil.Process) -> tuple[int, int]:
        told_apart.append(process.pid)
        return tell(process)

    with (
        child("number = len(block := bytearray(96 << 20))") as (pid, _),
        MemoryMonitor(limit_bytes, interval_seconds=None) as monitor,
    ):
        exact_bytes = monitor.sample()
        monkeypatch.setattr(memory, "process_bytes", noted)
        plain_bytes = monitor.sample(exact=False)

    assert (pid in told_apart) == is_near
    assert abs(plain_bytes - exact_bytes) < 16 * MIB


@pytest.mark.parametrize("has_files", [True, False])
def test_children_of_children_belong_to_a_process(monkeypatch: pytest.MonkeyPatch, has_files: bool):
    """Also those that another thread started, and where the kernel has no files of children."""

    def missing(path: Path) -> Iterator[Path]:
        raise FileNotFoundError(path)

    if not has_files:
        monkeypatch.setattr(Path, "iterdir", missing)
    program = "number = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=sys.stdin).pid"
    with ThreadPoolExecutor(1) as threads, ExitStack() as opened:
        pids = threads.submit(opened.enter_context, child(program)).result()
        tree = [process.pid for process in process_tree(psutil.Process())]

    assert tree[0] == psutil.Process().pid
    assert {*pids} <= {*tree}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([f"{64 * MIB}\n", f"{32 * MIB}"], 32 * MIB),
        ([f"{32 * MIB}", "max"], 32 * MIB),
        (["max\n", "", "9223372036854771712\n"], None),
    ],
)
def test_the_smallest_limit_of_machine_and_containers_counts(tmp_path, texts, expected):
    files = [tmp_path / f"limit_{index}" for index in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)

    found = memory_of_machine((tmp_path / "absent", *files))

    assert found == (expected or psutil.virtual_memory().total)
