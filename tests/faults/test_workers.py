"""Workers that are killed, crash or hang, and parents that are killed: told at once, and nothing is left."""

import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

from penstock.config.errors import PenstockError
from penstock.config.sizes import MIB
from penstock.data.workers.ends import WorkerError
from penstock.data.workers.stage import in_workers
from penstock.runtime.budget import Share
from penstock.runtime.worker_process import WorkerError
from tests.data.streams import stream_of_sizes
from tests.data.workers import functions
from tests.readers.samples import take
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
TENS = [list(range(start, start + 10)) for start in range(0, 100, 10)]


def ten_batches(function, num_workers=2, **options):
    """Workers over ten batches of ten numbers."""
    source = stream_of_sizes([10] * 10)
    share = Share("workers", MIB)
    return in_workers(source, function, num_workers, share, file_paths=["part-0.parquet"], **options)


@pytest.fixture
def gate(tmp_path):
    """The file for which functions wait."""
    return tmp_path / "open"


@dataclass
class GrowingImpatient:
    """Patience without an end, until a test says that the only one who is still at work hangs."""

    least_seconds: float = math.inf
    times_median: float = 0.0


def wait_for_ends(pids):
    """Until none of these processes is there any more."""
    wait_until(lambda: not any(alive(pid) for pid in pids))


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_worker_is_told_at_once_and_nothing_is_lost(gate):
    with ten_batches(partial(functions.waits_from, 30, str(gate))) as stage:
        taken = take(stage, 3)
        killed, other = stage.pids
        os.kill(killed, signal.SIGKILL)
        # Nobody can go on: without a word about it, this would end with one about workers that hang.
        with pytest.raises(PenstockError) as caught:
            taken.extend(stage)
        wait_for_ends([killed, other])
        text = str(caught.value)
        assert text.startswith(f"worker 0 (pid {killed}) was killed by SIGKILL while it had rows ")
        assert " of part-0.parquet" in text
        assert text.endswith("lower data_config.num_workers or data_config.batch_size, or raise memory.limit")
        assert stage.state_dict()["row"] == 10 * len(taken)

        gate.touch()
        assert taken + list(stage) == TENS, "with new workers, from where it stopped"
        assert not {killed, other} & set(stage.pids)


def test_the_memory_of_a_killed_worker_and_its_rows_are_told(gate):
    with ten_batches(partial(functions.kills_itself_at_20, str(gate))) as stage:
        take(stage, 2)  # while all of them are there to be looked at
        gate.touch()
        with pytest.raises(WorkerError) as caught:
            list(stage)

    assert "while it had rows 20 to 29 of part-0.parquet; its memory was last seen at " in str(caught.value)


def test_a_run_that_lost_a_worker_is_continued_elsewhere(gate):
    with ten_batches(partial(functions.kills_itself_at_20, str(gate))) as stage:
        taken = take(stage, 2)
        gate.touch()
        with pytest.raises(WorkerError):
            taken.extend(stage)
        saved = stage.state_dict()
    assert taken == TENS[:2]
    with ten_batches(functions.numbers_of) as other:
        other.load_state_dict(saved)
        assert taken + list(other) == TENS


def test_a_worker_that_crashes_in_compiled_code_leaves_its_stack():
    with ten_batches(functions.crashes_at_20) as stage, pytest.raises(WorkerError) as caught:
        list(stage)

    assert "was killed by SIGSEGV while it had rows 20 to 29 of part-0.parquet" in str(caught.value)
    assert str(caught.value).endswith("data_config.num_workers: 0 runs the same in the training process")
    assert "in crashes_at_20" in str(caught.value.__cause__)


def test_a_worker_that_ends_itself():
    with ten_batches(functions.exits_at_20) as stage, pytest.raises(WorkerError) as caught:
        list(stage)

    assert "ended itself with exit code 3 while it had rows 20 to 29" in str(caught.value)


def test_a_killed_template_is_told_and_its_workers_end(gate):
    with ten_batches(partial(functions.waits_from, 10, str(gate))) as stage:
        take(stage, 1)
        pids = stage.pids
        os.kill(psutil.Process(pids[0]).ppid(), signal.SIGKILL)
        with pytest.raises(
            WorkerError, match="process that worker processes are made from was killed by SIGKILL"
        ):
            list(stage)
        wait_for_ends(pids)


def test_a_hanging_worker_is_noticed_with_its_stack_and_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.data.workers.pool.STACK_SECONDS", 120.0)
    patience, hangs = GrowingImpatient(), tmp_path / "hangs"
    function = partial(functions.hangs_at_20_and_says_so, str(hangs))
    with ten_batches(function, num_workers=1, patience=patience) as stage:
        take(stage, 2)
        wait_until(hangs.exists)
        patience.least_seconds = 0.6
        with pytest.raises(WorkerError) as caught:
            list(stage)
        text = str(caught.value)
        assert stage.state_dict()["row"] == 20
        assert stage.pids == []
    assert re.search(
        r" has been at rows 20 to 29 of part-0.parquet for \d+ s; half of the batches take less", text
    )
    assert "functions.py, line " in text
    assert " in sleep_for_ever. Look at what it waits for" in text
    assert "in hangs_at_20_and_says_so" in str(caught.value.__cause__), "the whole stack is the cause"


def test_a_stopped_worker_is_noticed_by_its_state(gate):
    patience = GrowingImpatient()
    function = partial(functions.waits_from, 10, str(gate))
    with ten_batches(function, num_workers=1, patience=patience) as stage:
        take(stage, 1)
        pids = stage.pids
        os.kill(pids[0], signal.SIGSTOP)
        patience.least_seconds = 0.6
        with pytest.raises(WorkerError, match="its state is 'stopped'"):
            list(stage)
        wait_for_ends(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_signal_is_the_parents_to_answer(number):
    """It still needs its workers to finish a step and save."""
    with ten_batches(functions.slow) as stage:
        taken = take(stage, 2)
        for pid in [*stage.pids, psutil.Process(stage.pids[0]).ppid()]:
            os.kill(pid, number)
        assert taken + list(stage) == TENS


PARENT = """
import signal, sys, time
from penstock.batching.workers.stage import in_workers
from tests.data.streams import stream_of_sizes
from tests.data.workers import functions
stage = in_workers(stream_of_sizes([10] * 10), getattr(functions, sys.argv[1]), 2, Share("workers", 1 << 20))
signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background ignores it
items = iter(stage)
print(next(items))
print(*stage.pids, flush=True)
next(items), next(items)
time.sleep(600)
"""


def start_parent(function):
    """A program that has taken items from workers, and the process ids of these and of their template."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, function],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )
    assert process.stdout is not None
    process.stdout.readline()
    pids = [int(word) for word in process.stdout.readline().split()]
    return process, [*pids, psutil.Process(pids[0]).ppid()]


def named_shared_memory(pids):
    """Files of /dev/shm that processes have in memory; the folder itself also has what others put there."""
    maps = [Path(f"/proc/{pid}/maps") for pid in pids]
    lines = [line for file in maps if file.exists() for line in file.read_text().splitlines()]
    return {line for line in lines if "/dev/shm/" in line}


@pytest.mark.parametrize("function", ["slow", "hangs_at_20"])
def test_a_killed_parent_leaves_no_process_and_no_shared_memory(function):
    process, pids = start_parent(function)
    assert named_shared_memory([process.pid, *pids]) == set(), "what has no name is gone with its last user"

    process.kill()
    _, errors = process.communicate(timeout=300)

    wait_for_ends(pids)
    assert errors == ""


def test_a_program_that_ends_without_closing_leaves_no_process():
    process, pids = start_parent("hangs_at_20")

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)

    wait_for_ends(pids)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1, "the parent's alone"


@pytest.mark.slow
def test_a_worker_without_memory_raises_and_is_not_killed():
    """A function that asks for more than there is gets MemoryError, which arrives as such."""
    with ten_batches(functions.asks_for_too_much) as stage, pytest.raises(MemoryError):
        list(stage)
