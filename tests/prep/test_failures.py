"""Functions that fail in every way: one line tells of it, and nothing of their files is in the result."""

from pathlib import Path

import pytest

from penstock.config.errors import BudgetExceeded, ConfigError, DataError, PenstockError
from penstock.prep.prepare import prepare
from penstock.prep.tasks import FileFailed
from penstock.readers.store_schema import StoreManifest
from penstock.runtime.worker_process import WorkerError
from tests.prep.raw import events, prepared_arrays, section, write_games

WAYS = {
    "raise 0 0 0": "sample 9: 'rawgame:samples' failed: RuntimeError: one two",
    "exit 0 0 0": "sample 9: 'rawgame:samples' failed: SystemExit: 3",
    "40000 2 2 2": "sample 9: labels: head 'action': 40000 does not fit int16 (-32768 to 32767); declare another "
    "type in preprocessing.schema.labels",
}
"""What a line of a raw file makes the function do, and what is told of it."""
IN_WORKERS = {
    "exit 0 0 0": WAYS["exit 0 0 0"],
    "interrupt 0 0 0": "sample 9: 'rawgame:samples' failed: KeyboardInterrupt",
    "die 0 0 0": "a worker process was killed by SIGKILL at this file for the second time; most often memory has run "
    "out: lower preprocessing.num_workers or batch_size, or raise memory.limit",
}


def write_failing(folder: Path, line: str) -> Path:
    """Three files in one task; the one in the middle has batches of samples before the line."""
    bad = write_games(folder, [6, 9, 5])[1]
    bad.write_text("0 1 2 3\n" * 9 + f"{line}\n")
    return bad


CASES = [
    *((False, line, reason) for line, reason in WAYS.items()),
    *((True, line, reason) for line, reason in IN_WORKERS.items()),
]


@pytest.mark.parametrize(("parallel", "line", "reason"), CASES)
def test_one_line_tells_and_nothing_of_the_file_is_there(desk: Path, parallel: bool, line: str, reason: str):
    bad = write_failing(desk / "raw", line)

    with pytest.raises(PenstockError) as error:
        prepare(section(desk, parallel=parallel, num_workers=1))
    assert str(error.value) == f"{bad}: {reason}"
    summary = prepare(section(desk, parallel=parallel, num_workers=1, on_error="skip"))

    assert summary.left_out == {str(bad): f"{bad}: {reason}"}
    assert [entry.num_samples for entry in StoreManifest.read(desk / "batches").inputs] == [6, 0, 5]
    assert [event["file"] for event in events(desk / "batches") if event["event"] == "left_out"] == [str(bad)]
    assert prepared_arrays(desk / "batches")["strategic_features"][:, 0].tolist() == [0.0] * 6 + [2.0] * 5


@pytest.mark.parametrize("line", [pytest.param("abort 0 0 0", marks=pytest.mark.slow), "0 what"])
def test_a_first_file_at_which_a_worker_ends_or_fails(desk: Path, line: str):
    games = write_games(desk / "raw", [2, 0, 3])
    games[0].write_text(f"{line}\n")

    with pytest.raises((FileFailed, WorkerError)) as error:
        prepare(section(desk, parallel=True, num_workers=1))
    assert str(error.value).startswith(f"{games[0]}: ")
    summary = prepare(section(desk, parallel=True, num_workers=1, on_error="skip"))

    assert (summary.num_samples, [*summary.left_out]) == (3, [str(games[0])])


def test_no_file_without_failure(desk: Path):
    games = write_games(desk / "raw", [0, 2])
    games[1].write_text("abort 0 0 0\n")

    with pytest.raises(DataError) as error:
        prepare(section(desk, parallel=True, on_error="skip"))

    text = (
        f"{games[1]}: a worker process was killed by SIGABRT at this file; it was in {desk}/rawgame.py, line "
    )
    assert str(error.value).startswith(text)
    assert str(error.value).endswith(" in samples; no file is left that gives a sample")


def test_a_module_that_ends_the_program(desk: Path):
    write_games(desk / "raw", [2])
    (desk / "unguarded.py").write_text("import sys\nsys.exit('usage: unguarded.py FILE')\n")

    with pytest.raises(ConfigError) as error:
        prepare(section(desk, extract="unguarded:samples"))

    assert str(error.value) == (
        "preprocessing.extract: 'unguarded:samples' cannot be imported: SystemExit: usage: unguarded.py FILE"
    )


@pytest.mark.parametrize("parallel", [False, True])
def test_what_functions_print_is_no_result(desk: Path, capfd: pytest.CaptureFixture[str], parallel: bool):
    games = write_games(desk / "raw", [2, 2])
    games[1].write_text("print 1 2 3\n")

    assert prepare(section(desk, parallel=parallel, num_workers=1)).num_samples == 3
    shown = capfd.readouterr()
    assert (shown.out, "seen ['1', '2', '3']\n" in shown.err) == ("", True)


def test_threads_of_a_function_keep_no_worker_alive(desk: Path):
    games = write_games(desk / "raw", [2, 2])
    games[1].write_text("start-a-thread 0 2 3\n")

    assert prepare(section(desk, parallel=True, num_workers=1)).num_samples == 3


def test_batches_for_which_there_is_no_memory_are_told_with_what_to_lower(desk: Path):
    games = write_games(desk / "raw", [3])

    with pytest.raises(BudgetExceeded) as error:
        prepare(section(desk, batch_size=10**15), limit_bytes=1 << 62)

    assert str(error.value) == (
        f"{games[0]}: memory has run out for batches of 1,000,000,000,000,000 samples; lower preprocessing.batch_size "
        "or num_workers"
    )


def test_a_file_that_was_left_out_may_be_mended(desk: Path):
    bad = write_failing(desk / "raw", "raise 0 0 0")
    assert prepare(section(desk, on_error="skip")).num_samples == 11
    assert prepare(section(desk, on_error="skip")).kept_tasks == 1

    bad.write_text("0 1 2 3\n" * 9)
    mended = prepare(section(desk, on_error="skip"))

    assert (mended.num_samples, mended.kept_tasks, mended.left_out) == (20, 0, {})
    assert prepare(section(desk, on_error="skip")).kept_tasks == 1
