"""Tasks in worker processes."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from penstock.batching.workers.ends import WorkerError
from penstock.prep.preparing.failures import FileFailed
from penstock.prep.preparing.preparing import prepare
from penstock.prep.preparing.watching import Stopped, WatchOptions
from penstock.runtime.interrupts import StopRequest
from tests.prep.preparing.raw import content, prepared_arrays, section, write_games


@pytest.fixture(autouse=True)
def one_file_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few short files make several tasks."""
    monkeypatch.setattr("penstock.prep.preparing.tasks._LEAST_TASK_BYTES", 1)


def test_the_bytes_are_those_of_one_process(desk: Path):
    write_games(desk / "raw", [3, 9, 0, 5, 4])
    prepare(section(desk))

    summary = prepare(section(desk, parallel=True, num_workers=2, intermediate_dir=str(desk / "others")))

    assert summary.num_workers == 2
    assert content(desk / "others") == content(desk / "batches")


def test_a_failure_in_a_worker_is_told_as_one_here(desk: Path):
    games = write_games(desk / "raw", [3, 2])
    games[1].write_text("0 1 2 what\n")

    with pytest.raises(FileFailed) as error:
        prepare(section(desk, parallel=True, num_workers=1))

    assert str(error.value) == (
        f"{games[1]}: sample 0: 'rawgame:samples' failed: ValueError: could not convert string to float: 'what'"
    )
    assert 'rawgame.py", line ' in str(error.value.__cause__)


def test_files_are_left_out_by_workers_as_here(desk: Path):
    games = write_games(desk / "raw", [3, 2])
    games[1].write_text("0 1 2 what\n")

    summary = prepare(section(desk, parallel=True, num_workers=1, on_error="skip"))

    assert (summary.num_samples, [*summary.left_out]) == (3, [str(games[1])])


def test_the_task_of_a_killed_worker_is_done_once_more(desk: Path, caplog: pytest.LogCaptureFixture):
    games = write_games(desk / "raw", [3, 2, 2])
    games[1].write_text("1 1 1 1\ndie-once 1 2 3\n")

    summary = prepare(section(desk, parallel=True, num_workers=1))

    assert summary.num_samples == 7
    assert prepared_arrays(desk / "batches")["strategic_features"][3:5].tolist() == [[1, 1, 1], [1, 2, 3]]
    assert caplog.messages == [
        f"task_00001: a worker process was killed by SIGKILL at {games[1]}; the task is done once more"
    ]


def test_a_worker_that_is_killed_twice_is_reported(desk: Path):
    games = write_games(desk / "raw", [3, 2, 2])
    games[1].write_text("die 1 2 3\n")

    with pytest.raises(WorkerError) as error:
        prepare(section(desk, parallel=True, num_workers=1))

    assert str(error.value) == (
        f"task_00001: a worker process was killed by SIGKILL at {games[1]}, and so did the one before it; most often "
        "memory has run out: lower preprocessing.num_workers or batch_size, or raise memory.limit"
    )
    skipping = prepare(section(desk, parallel=True, num_workers=1, on_error="skip"))
    assert (skipping.num_samples, [*skipping.left_out]) == (5, [str(games[1])])


class StopAfterATask(StopRequest):
    """Ctrl-C as soon as the log tells that a task is done."""

    def __init__(self, log: Path) -> None:
        self.log, self.signal_number = log, signal.SIGINT

    def __bool__(self) -> bool:
        return '"event": "task"' in self.log.read_text()


def test_a_stop_keeps_what_is_done_and_leaves_no_process(desk: Path):
    games = write_games(desk / "raw", [3, 2])
    games[1].write_text("wait 600\n")
    watching = WatchOptions(stop=StopAfterATask(desk / "batches" / "log.jsonl"))

    with pytest.raises(Stopped) as error:
        prepare(section(desk, parallel=True, num_workers=2), watching=watching)

    assert str(error.value) == "stopped: 1 of 2 tasks are done and kept; run the same again to go on"
    assert error.value.exit_code == 130
    assert psutil.Process(os.getpid()).children() == []
    games[1].write_text("wait 0\n")
    assert prepare(section(desk)).kept_tasks == 1
