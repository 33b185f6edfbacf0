"""The memory monitor sees real bytes, of children too, and says which stage had them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.config.sizes import MIB
from penstock.runtime.memory import MemoryMonitor, tree_bytes
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
    assert not monitor.report.exceeded


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


def test_what_happens_between_stages_belongs_to_the_one_before():
    with MemoryMonitor(limit_bytes=1 << 40, interval_seconds=None) as monitor:
        with monitor.stage("first"):
            pass
        block = bytearray(96 * MIB)
        monitor.sample()
        with monitor.stage("outer"), monitor.stage("inner"):
            del block
    peaks = monitor.report.stage_peaks

    assert list(peaks) == ["start", "first", "outer", "inner"]
    assert peaks["first"] - peaks["start"] > 64 * MIB


@contextmanager
def child(program: str) -> Iterator[None]:
    """A process that has run a program, and waits."""
    waiting = f"import sys; {program}; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        yield
        process.stdin.close()


def test_children_count():
    alone = tree_bytes()
    with child("block = bytearray(96 << 20)"):
        together = tree_bytes()

    assert together - alone > 64 * MIB


def test_processes_that_were_there_before_are_not_told_as_started():
    large = child("block = bytearray(96 << 20)")
    with large, MemoryMonitor(limit_bytes=1 << 40, interval_seconds=None) as monitor:
        pass

    assert monitor.report.started_peak_bytes < 32 * MIB


def test_exceeding_the_limit_is_told():
    with MemoryMonitor(limit_bytes=1) as monitor:
        pass

    assert monitor.report.exceeded
