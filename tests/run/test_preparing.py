"""Preparation and merging from a run file."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock
from penstock.config.sizes import MIB, format_size
from penstock.runtime.memory import MemoryMonitor
from tests.prep.raw import enter_folder, events


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two raw files and a run file, in the current folder."""
    enter_folder(tmp_path, monkeypatch)
    return tmp_path


def log_events(folder: Path) -> list[str]:
    return [event["event"] for event in events(folder / "batches")]


def test_prepare_takes_a_run_file_and_gives_what_it_made(folder: Path):
    result = penstock.prepare("prep.yaml")

    assert isinstance(result, penstock.PrepResult)
    assert (result.prepared.num_samples, result.merged.num_samples) == (9, {"train": 9})
    assert result.memory.stage_peaks.keys() >= {"finding the schema", "preparing", "merging"}
    assert log_events(folder) == ["begin", "file", "file", "task", "end", "memory"]
    assert np.load("store/X_train.npy").shape == (9, 3)


WAITING = """
import os, time
import rawgame

def samples(path):
    \"\"\"Those of rawgame, once the memory of this worker was measured.\"\"\"
    deadline = time.monotonic() + 300
    while not os.path.exists("measured") and time.monotonic() < deadline:
        time.sleep(0.01)
    yield from rawgame.samples(path)
"""


def test_what_worker_processes_take_is_told_too(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "waiting.py").write_text(WAITING)
    monkeypatch.delitem(sys.modules, "waiting", raising=False)
    sample = MemoryMonitor.sample

    def noted(monitor: MemoryMonitor, *, exact: bool = True) -> int:
        taken_bytes = sample(monitor, exact=exact)
        if monitor.report.started_peak_bytes > 10 * MIB:
            (folder / "measured").touch()
        return taken_bytes

    monkeypatch.setattr(MemoryMonitor, "sample", noted)
    keys = {"preprocessing.parallel": True, "preprocessing.extract": "waiting:samples"}

    result = penstock.prepare(penstock.load_run("prep.yaml", keys), merge=False)

    workers_bytes = result.memory.started_peak_bytes
    assert 10 * MIB < workers_bytes < result.memory.stage_peaks["preparing"]
    assert events(folder / "batches")[-1]["workers_peak_bytes"] == workers_bytes
    assert result.lines()[-1].endswith(f"); worker processes at most {format_size(workers_bytes)}")


def test_the_peaks_of_one_that_fails_are_in_the_log(folder: Path):
    (folder / "raw" / "game_1.txt").write_text("0 1 2 what\n")

    with pytest.raises(penstock.DataError, match=r"game_1\.txt: sample 0"):
        penstock.prepare("prep.yaml")

    assert events(folder / "batches")[-1]["stage_peaks"].keys() >= {"finding the schema", "preparing"}


def test_nothing_is_measured_where_that_is_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr("penstock.run.preparation.MemoryMonitor")
    edits = {"memory.monitor": False, "preprocessing.verbose": False}

    result = penstock.prepare(penstock.load_run("prep.yaml", edits))

    assert result.memory is None
    assert log_events(folder) == ["begin", "task", "end"]
    assert not any("memory" in line for line in result.lines())


def test_preparing_loads_no_torch():
    code = "import sys, penstock; penstock.prepare, penstock.merge; sys.exit('torch' in sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_written_to_a_folder_of_others(folder: Path):
    (folder / "batches").mkdir()
    (folder / "batches" / "notes.txt").write_text("mine")

    for restart in (False, True):
        with pytest.raises(penstock.DataError, match=r"holds notes\.txt, which penstock prep did not begin"):
            penstock.prepare("prep.yaml", restart=restart)

    assert [path.name for path in (folder / "batches").iterdir()] == ["notes.txt"]
