"""The memory monitor sees real bytes, of children too, and says which stage had them."""

import subprocess
import sys
import time

from penstock.config.sizes import MIB
from penstock.runtime.memory import MemoryMonitor, tree_bytes


def test_the_peak_belongs_to_the_stage_that_took_it():
    with MemoryMonitor(limit_bytes=1 << 40, interval_seconds=0.01) as monitor:
        with monitor.stage("small"):
            time.sleep(0.03)
        with monitor.stage("large"):
            block = bytearray(96 * MIB)
            time.sleep(0.05)
            del block

    assert monitor.report.peak_stage == "large"
    assert monitor.report.stage_peaks["large"] - monitor.report.stage_peaks["small"] > 64 * MIB
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


def test_children_count():
    alone = tree_bytes()
    program = "import sys; block = bytearray(64 << 20); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        together = tree_bytes()
        child.stdin.close()

    assert together - alone > 64 * MIB


def test_processes_that_were_there_before_are_not_told_as_started():
    program = "print('ready', flush=True); import sys; sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        with MemoryMonitor(limit_bytes=1 << 40, interval_seconds=None) as monitor:
            pass
        child.stdin.close()

    assert monitor.report.started_peak_bytes < MIB


def test_exceeding_the_limit_is_told():
    with MemoryMonitor(limit_bytes=1) as monitor:
        pass

    assert monitor.report.exceeded
