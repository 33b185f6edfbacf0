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


def test_exceeding_the_limit_is_told():
    with MemoryMonitor(limit_bytes=1) as monitor:
        pass

    assert monitor.report.exceeded
