"""Workers that are killed, crash or hang, and parents that are killed: reported, done again, and nothing is left."""

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from penstock.config.sizes import MIB
from penstock.data.parallel_map import ParallelMap
from penstock.runtime.budget import Share
from penstock.runtime.worker_process import WorkerError
from tests.data import worker_functions as functions
from tests.data.streams import stream_of_sizes
from tests.readers.samples import take
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
TENS = [list(range(start, start + 10)) for start in range(0, 100, 10)]


def ten_batches(function, num_workers=2):
    """Workers over ten batches of ten numbers."""
    share = Share("workers", MIB)
    return ParallelMap(stream_of_sizes([10] * 10), function, num_workers, share, ["part-0.parquet"])


def results(stage, count=None):
    pairs = stage if count is None else take(stage, count)
    return [result for result, _ in pairs]


@pytest.fixture
def gate(tmp_path):
    """The file for which functions wait."""
    return tmp_path / "open"


def wait_for_ends(pids):
    """Until none of these processes is there any more."""
    wait_until(lambda: not any(alive(pid) for pid in pids))


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_batch_of_a_killed_worker_is_done_again(gate, caplog):
    with ten_batches(partial(functions.kills_itself_once_at_20, str(gate))) as stage:
        assert results(stage) == TENS

    (line,) = [line for line in caplog.messages if "was killed" in line]
    assert re.match(r"worker \d \(pid \d+\) was killed by SIGKILL while it had rows 20 to 29 of ", line)
    assert line.endswith("it is tried once more")


def test_a_batch_that_kills_two_workers_ends_the_run_which_goes_on_elsewhere(gate):
    gate.touch()
    taken = []
    with ten_batches(partial(functions.kills_itself_at_20, str(gate))) as stage:
        with pytest.raises(WorkerError) as caught:
            taken.extend(result for result, _ in stage)
        saved = stage.state_dict()

    assert " was killed by SIGKILL while it had rows 20 to 29 of part-0.parquet" in str(caught.value)
    assert str(caught.value).endswith(
        "for the second time. Most often memory has run out: lower data_config.num_workers or "
        "data_config.batch_size, or raise memory.limit"
    )
    assert saved["row"] == 10 * len(taken) <= 20
    with ten_batches(functions.numbers_of) as other:
        other.load_state_dict(saved)
        assert taken + results(other) == TENS


@pytest.mark.parametrize(
    ("function", "how", "stack"),
    [
        (functions.crashes_at_20, "was killed by SIGSEGV", "in crashes_at_20"),
        (functions.exits_at_20, "ended itself with exit code 3", None),
    ],
    ids=["crash in compiled code", "exit"],
)
def test_a_worker_that_ends_by_itself(function, how, stack):
    with ten_batches(function) as stage, pytest.raises(WorkerError) as caught:
        list(stage)

    assert f" {how} while it had rows 20 to 29 of part-0.parquet" in str(caught.value)
    assert str(caught.value).endswith("data_config.num_workers: 0 runs the same in the training process")
    assert stack is None or stack in str(caught.value.__cause__)


def test_a_hanging_worker_is_noticed_with_its_stack_and_rows(tmp_path):
    hangs = tmp_path / "hangs"
    with ten_batches(partial(functions.hangs_at_20_and_says_so, str(hangs)), num_workers=1) as stage:
        pairs = iter(stage)
        assert [next(pairs)[0], next(pairs)[0]] == TENS[:2]
        wait_until(hangs.exists)
        # It is allowed 60 s, and ten times what the longest batch took.
        stage._pool._hang_seconds, stage._pool._longest_seconds = 0.6, 0.01
        with pytest.raises(WorkerError) as caught:
            next(pairs)
        text = str(caught.value)
        assert stage.state_dict()["row"] == 20
        assert stage.pids == []
    assert re.search(r" has been at rows 20 to 29 of part-0.parquet for \d+ s; until now a batch took ", text)
    assert " in sleep_for_ever. Look at what it waits for" in text
    assert "in hangs_at_20_and_says_so" in str(caught.value.__cause__), "the whole stack is the cause"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_signal_is_the_parents_to_answer(number):
    """It still needs its workers to finish a step and save."""
    with ten_batches(functions.slow) as stage:
        pairs = iter(stage)
        taken = [next(pairs)[0], next(pairs)[0]]
        for pid in stage.pids:
            os.kill(pid, number)
        assert taken + results(pairs) == TENS


PARENT = """
import signal, sys, time
from penstock.data.parallel_map import ParallelMap
from penstock.runtime.budget import Share
from tests.data.streams import stream_of_sizes
from tests.data import worker_functions
function = getattr(worker_functions, sys.argv[1])
stage = ParallelMap(stream_of_sizes([10] * 10), function, 2, Share("workers", 1 << 20))
signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background ignores it
results = iter(stage)
print(next(results)[0])
print(*stage.pids, flush=True)
next(results)
time.sleep(600)
"""


def start_parent(function):
    """A program that has taken results from workers, and the process ids of these and of their fork server."""
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


@pytest.mark.parametrize("function", ["slow", "hangs_at_20"])
def test_a_killed_parent_leaves_no_process(function):
    process, pids = start_parent(function)

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
