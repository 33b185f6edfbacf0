"""Tasks in worker processes."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB
from penstock.prep.preparing.crew.crew_size import CrewSize
from penstock.prep.preparing.failures import FileFailed
from penstock.prep.preparing.preparing import prepare
from penstock.prep.preparing.watching import WatchOptions
from penstock.runtime.interrupts import Stopped, StopRequest
from penstock.runtime.memory import MemoryMonitor, tree_bytes
from tests.prep.preparing.raw import content, prepared_arrays, section, wait_for_end, write_games


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
        f"{games[1]}: a worker process was killed by SIGKILL at this file; it is tried once more"
    ]


def test_a_killed_worker_is_missed_though_a_program_that_it_started_lives(desk: Path):
    games = write_games(desk / "raw", [3, 2])
    games[1].write_text("start-a-program 1 1 1\ndie-once 1 2 3\n")

    summary = prepare(section(desk, parallel=True, num_workers=1))

    programs = [int(line) for line in Path(f"{games[1]}.programs").read_text().split()]
    assert (summary.num_samples, len(programs)) == (5, 2)
    for program in programs:
        wait_for_end(program)


def test_every_file_at_which_a_worker_ends_has_a_second_chance(desk: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("penstock.prep.preparing.tasks._LEAST_TASK_BYTES", 1000)
    games = write_games(desk / "raw", [3, 2, 2])
    for game in games[1:]:
        game.write_text("die-once 1 2 3\n")

    summary = prepare(section(desk, parallel=True, num_workers=1))

    assert (summary.num_tasks, summary.num_samples) == (1, 5)


def children() -> set[psutil.Process]:
    """Processes that this one has started; other tests may have left some that serve all of them."""
    return {*psutil.Process(os.getpid()).children()}


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
    before = children()

    with pytest.raises(Stopped) as error:
        prepare(section(desk, parallel=True, num_workers=2), watching=watching)

    assert str(error.value) == "stopped: 1 of 2 tasks are done and kept; run the same again to go on"
    assert error.value.exit_code == 130
    assert children() <= before
    games[1].write_text("wait 0\n")
    assert prepare(section(desk)).kept_tasks == 1


def begin_with(size: CrewSize, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many workers, whatever this process itself takes by now."""
    monkeypatch.setattr("penstock.prep.preparing.crew.executing.crew_size", lambda *_: size)


def test_workers_are_added_while_memory_allows(
    desk: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    begin_with(CrewSize(1, 3, tree_bytes() + 800 * MIB), monkeypatch)
    games = write_games(desk / "raw", [1] * 5)
    # The first worker is at this file until the third, which comes when the second has made something, is at the last.
    games[1].write_text(f"await {games[4].name}.here\n")
    games[4].write_text("here\n0 1 2 3\n")

    summary = prepare(section(desk, parallel=True))

    assert (summary.num_workers, summary.num_samples, caplog.messages) == (3, 5, [])


def test_fewer_workers_than_asked_for_are_told_also_where_the_work_is_done_soon(
    desk: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    caplog.set_level("INFO")
    begin_with(CrewSize(2, 3, 64 * MIB), monkeypatch)
    games = write_games(desk / "raw", [1] * 3)
    # The second worker makes nothing before the first is at the last file.
    games[1].write_text(f"await {games[2].name}.here\n")
    games[2].write_text("here\n0 1 2 3\n")

    summary = prepare(section(desk, parallel=True))

    assert (summary.num_workers, summary.num_samples) == (2, 3)
    [message] = caplog.messages
    assert message == (
        "preprocessing.num_workers: 2 of 3 worker processes were started; the work was done before it was known "
        "whether memory.limit (64MiB) has room for more"
    )


def test_no_worker_is_added_where_memory_does_not_allow(desk: Path, caplog: pytest.LogCaptureFixture):
    write_games(desk / "raw", [1] * 4)

    # Less than the interpreter alone takes.
    summary = prepare(section(desk, parallel=True, num_workers=3), limit_bytes=16 * MIB)

    assert (summary.num_workers, summary.num_samples) == (1, 4)
    [message] = caplog.messages
    assert message.startswith(
        "preprocessing.num_workers: going on with 1 of 3 worker processes, since memory.limit is "
    )
    assert " and each of them takes up to " in message


@pytest.mark.slow
def test_a_worker_is_given_up_when_all_take_too_much(
    desk: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    games = write_games(desk / "raw", [1] * 3)
    # Both workers hold it until one of them is given up; the other then does both files.
    games[1].write_text(f"eat-with 700 {games[2].name}\n")
    games[2].write_text(f"eat-with 700 {games[1].name}\n")
    # Far from what one and what two take: pages of libraries count by how many other processes share them.
    limit_bytes = tree_bytes() + 1050 * MIB
    begin_with(CrewSize(2, 2, limit_bytes), monkeypatch)

    with MemoryMonitor(limit_bytes, 0.1) as monitor:
        watching = WatchOptions(monitor=monitor, stops_when_exceeded=True)
        summary = prepare(section(desk, parallel=True), watching=watching)

    assert summary.num_samples == 3
    assert any("going on with 1 of 2 worker processes" in message for message in caplog.messages)


def test_one_worker_that_takes_too_much_ends_it(desk: Path):
    write_games(desk / "raw", [1, 1])[1].write_text("eat 300 600\n")
    before = children()

    with MemoryMonitor(tree_bytes() + 200 * MIB, 0.1) as monitor:
        watching = WatchOptions(monitor=monitor, stops_when_exceeded=True)
        with pytest.raises(BudgetExceeded, match=r"^preparing takes .* lower preprocessing\.batch_size, or"):
            prepare(section(desk, parallel=True, num_workers=1), watching=watching)

    assert children() <= before


def test_a_limit_below_the_program_itself_is_told_as_such(desk: Path):
    write_games(desk / "raw", [1, 1])

    limit_bytes = tree_bytes() // 2
    with MemoryMonitor(limit_bytes, 0.1) as monitor:
        watching = WatchOptions(monitor=monitor, stops_when_exceeded=True)
        with pytest.raises(
            BudgetExceeded, match=r"^memory\.limit: is .*iB, but the program alone takes .*iB; raise it to "
        ):
            prepare(section(desk, parallel=True, num_workers=1), limit_bytes=limit_bytes, watching=watching)
