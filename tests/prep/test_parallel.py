"""Tasks in worker processes and on Ray: how many, in how much memory, and what becomes of those that die or hang."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.config.errors import BudgetExceeded, ConfigError
from penstock.config.sizes import GIB, MIB
from penstock.prep import prepare as preparing
from penstock.prep.prepare import WorkerLimits, prepare
from penstock.prep.sections import Preprocessing
from penstock.prep.tasks import FileFailed, PrepTask, TaskProgress
from penstock.prep.watch import Watch, WatchOptions
from penstock.runtime.memory import MemoryMonitor, tree_bytes
from penstock.runtime.worker_process import WorkerError
from penstock.runtime.workers import PoolSize, WorkerPool
from penstock.runtime.world import Stopped, StopRequest
from tests.prep.raw import content, events, prepared_arrays, section, write_games


@pytest.fixture(autouse=True)
def one_file_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few short files make several tasks."""
    monkeypatch.setattr("penstock.prep.tasks._MIN_TASK_BYTES", 1)


def test_the_bytes_are_those_of_one_process(desk: Path):
    write_games(desk / "raw", [3, 9, 0, 5, 4])
    prepare(section(desk))

    summary = prepare(section(desk, parallel=True, num_workers=2, intermediate_dir=str(desk / "others")))

    assert summary.num_workers == 2
    assert content(desk / "others") == content(desk / "batches")


def test_the_task_of_a_killed_worker_is_done_once_more(desk: Path, caplog: pytest.LogCaptureFixture):
    games = write_games(desk / "raw", [3, 2, 2])
    games[1].write_text("1 1 1 1\ndie-once 1 2 3\n")

    summary = prepare(section(desk, parallel=True, num_workers=1))

    assert summary.num_samples == 7
    assert prepared_arrays(desk / "batches")["strategic_features"][3:5].tolist() == [[1, 1, 1], [1, 2, 3]]
    assert caplog.messages == [
        f"{games[1]}: a worker process was killed by SIGKILL at this file; it is tried once more"
    ]


def workers() -> set[psutil.Process]:
    """Processes that others have started for this one; the fork server itself stays."""
    children = psutil.Process(os.getpid()).children(recursive=True)
    return {child for child in children if child.ppid() != os.getpid()}


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
    before = workers()

    with pytest.raises(Stopped) as error:
        prepare(section(desk, parallel=True, num_workers=2), watching=watching)

    assert str(error.value) == "stopped: 1 of 2 tasks are done and kept; run the same again to go on"
    assert error.value.exit_code == 130
    assert workers() <= before
    games[1].write_text("wait 0\n")
    assert prepare(section(desk)).kept_tasks == 1


def begin_with(size: PoolSize, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many workers, whatever this process itself takes by now."""
    size = replace(size, setting="preprocessing.num_workers")
    monkeypatch.setattr(WorkerLimits, "pool_size", lambda *_: size)


def test_memory_ends_a_preparation_only_where_no_worker_can_be_given_up(tmp_path: Path):
    monitor = MemoryMonitor(limit_bytes=1 << 50, interval_seconds=None)
    watch = Watch(tmp_path / "log.jsonl", [], [], WatchOptions(monitor=monitor, stops_when_exceeded=True), 2)

    monitor.last_bytes = 1 << 51  # measured before a worker was given up
    watch.tick()

    monitor.report.limit_bytes = 1
    watch.received(
        PrepTask(0, ()), TaskProgress(0, 1, 1, "raw", has_written=True)
    )  # the pool may still shrink
    with pytest.raises(BudgetExceeded):
        watch.tick()


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
    begin_with(PoolSize(2, 2, limit_bytes), monkeypatch)

    with MemoryMonitor(limit_bytes, 0.1) as monitor:
        watching = WatchOptions(monitor=monitor, stops_when_exceeded=True)
        summary = prepare(section(desk, parallel=True), watching=watching)

    assert summary.num_samples == 3
    assert any("going on with 1 of 2 worker processes" in message for message in caplog.messages)


def test_one_worker_that_takes_too_much_ends_it(desk: Path):
    write_games(desk / "raw", [1, 1])[1].write_text("eat 1500 600\n")
    before = workers()

    with MemoryMonitor(tree_bytes() + 600 * MIB, 0.1) as monitor:
        watching = WatchOptions(monitor=monitor, stops_when_exceeded=True)
        with pytest.raises(BudgetExceeded, match=r"^preparing takes .* lower preprocessing\.batch_size, or"):
            prepare(section(desk, parallel=True, num_workers=1), watching=watching)

    assert workers() <= before


def test_a_worker_that_hangs_is_in_the_log(desk: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any):
    games = write_games(desk / "raw", [2, 2])
    games[1].write_text("here\nawait ../batches/log.jsonl game_1.txt\n")
    monkeypatch.setattr(preparing, "WorkerPool", partial(WorkerPool, hang_seconds=0.1))
    monkeypatch.setattr("penstock.runtime.workers._HANG_FACTOR", 0)

    prepare(section(desk, parallel=True, num_workers=1))

    silent = [event for event in events(desk / "batches") if event["event"] == "silent"]
    assert (silent[-1]["task"], silent[-1]["file"]) == (1, str(games[1]))
    assert f"{games[1]}: nothing was heard of this file for " in capfd.readouterr().err


def room(limit_bytes: int, cores: int = 12) -> WorkerLimits:
    return WorkerLimits(cores, limit_bytes, process_bytes=100 * MIB, batch_bytes=2 * MIB)


def size(wanted: int | None, num_tasks: int, there: WorkerLimits) -> tuple[int, int]:
    found = there.pool_size(wanted, num_tasks)
    return found.start, found.max


def of_batches(batch_size: int, parallel: bool = True) -> Preprocessing:
    return Preprocessing(batch_size=batch_size, parallel=parallel)


def test_the_number_of_workers():
    assert size(None, 1000, room(8 * GIB)) == (10, 10), "two cores are left"
    assert size(None, 1000, room(8 * GIB, cores=2))[1] == 1
    assert size(None, 1000, room(MIB))[0] == 1, "there is always one"
    assert size(None, 1000, room(GIB)) == (2, 10), "where memory is not ample, a few begin"
    assert size(16, 1000, room(8 * GIB))[1] == 16, "the run file may ask for more than cores"
    assert size(None, 3, room(8 * GIB))[1] == 3, "no more than tasks"


def test_a_batch_that_no_process_can_hold_is_refused_with_the_size_that_fits():
    narrow = WorkerLimits(cores=12, limit_bytes=238 * MIB, process_bytes=140 * MIB, batch_bytes=500 * MIB)

    with pytest.raises(BudgetExceeded) as error:
        narrow.check(of_batches(500, parallel=True), False)

    assert str(error.value) == (
        "preprocessing.batch_size: filling, converting and writing 500 samples of 1MiB each takes up to 1.5GiB, but "
        "memory.limit of 238MiB leaves 50MiB for it; set batch_size to 16, or raise memory.limit to 1704MiB"
    )
    replace(narrow, batch_bytes=16 * MIB).check(of_batches(16, parallel=True), False)
    with pytest.raises(BudgetExceeded, match=r"leaves 98MiB for it; set batch_size to 32, or raise"):
        narrow.check(of_batches(500, parallel=False), False)


def test_a_limit_below_the_program_is_told_with_one_that_does_for_all_of_it():
    with pytest.raises(BudgetExceeded) as error:
        room(limit_bytes=80 * MIB).check(of_batches(500), True)

    assert str(error.value) == (
        "memory.limit: is 80MiB, but the program alone takes 100MiB; raise it to 170MiB"
    )
    room(limit_bytes=170 * MIB).check(of_batches(500), True)


def test_without_the_library_one_line_says_what_to_install(desk: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    write_games(desk / "raw", [2])

    with pytest.raises(ConfigError) as error:
        prepare(section(desk, parallel=True, executor="ray"))

    assert str(error.value) == (
        "preprocessing.executor: ray needs the library: pip install 'penstock[ray]'; or set executor: local"
    )


@pytest.fixture
def ray(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of two cores; its workers find the module as a user's would."""
    library = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(desk), prepend=":")
    library.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield library
    library.shutdown()


@pytest.mark.slow
def test_the_bytes_of_ray_are_those_of_one_process(desk: Path, ray: Any):
    del ray
    games = write_games(desk / "raw", [3, 9, 0, 5, 4])
    prepare(section(desk))

    summary = prepare(section(desk, parallel=True, executor="ray", intermediate_dir=str(desk / "others")))

    assert (summary.num_workers, summary.num_samples) == (2, 21)
    assert content(desk / "others") == content(desk / "batches")
    games[1].write_text("0 1 2 what\n")
    ray_again = section(desk, parallel=True, executor="ray", intermediate_dir=str(desk / "failing"))
    with pytest.raises(FileFailed, match=r"game_1\.txt: sample 0: 'rawgame:samples' failed: ValueError"):
        prepare(ray_again)
    skipping = section(
        desk, parallel=True, executor="ray", intermediate_dir=str(desk / "failing"), on_error="skip"
    )
    assert [*prepare(skipping).left_out] == [str(games[1])]


@pytest.mark.slow
def test_a_killed_task_is_done_once_more_and_then_reported(desk: Path, ray: Any):
    del ray
    games = write_games(desk / "raw", [3, 1])
    games[1].write_text("die-once 1 2 3\n")
    on_ray = section(desk, parallel=True, executor="ray")

    assert prepare(on_ray).num_samples == 4
    games[1].write_text("die 1 2 3\n")
    reason = r"game_1\.txt: a worker process ended on Ray with WorkerCrashedError at this file for the second time; "
    with pytest.raises(WorkerError, match=reason):
        prepare(on_ray, restart=True)
    skipping = prepare(section(desk, parallel=True, executor="ray", on_error="skip"))
    assert (skipping.num_samples, [*skipping.left_out]) == (3, [str(games[1])])
