"""What an error says about a worker."""

import signal

import pyarrow as pa
import pytest

from penstock.data.workers.ends import (
    WorkerFacts,
    hangs,
    killed,
    rows_of,
    template_killed,
)
from penstock.readers.origin import with_row_ids

WORKER = WorkerFacts(1, 4711, "rows 0 to 9 of a.parquet", 212 * 2**20)
BATCH = pa.record_batch({"x": list(range(6))})


def test_a_worker_that_was_killed_for_want_of_memory():
    assert str(killed(WORKER, -signal.SIGKILL, oom_kills=1)) == (
        "worker 1 (pid 4711) was killed by SIGKILL while it had rows 0 to 9 of a.parquet; its memory was last seen at "
        "212MiB; for want of memory the kernel has killed 1 in this container since the start. Most often memory has "
        "run out: lower data_config.num_workers or data_config.batch_size, or raise memory.limit"
    )


@pytest.mark.parametrize(
    ("exit_code", "ending"),
    [
        (-signal.SIGSEGV, "was killed by SIGSEGV"),
        (-250, "was killed by signal 250"),
        (0, "ended itself with exit code 0"),
        (None, "is gone, its signal is not known,"),
    ],
)
def test_every_end_has_its_words(exit_code, ending):
    assert str(killed(WORKER, exit_code, 0)).startswith(
        f"worker 1 (pid 4711) {ending} while it had rows 0 to 9"
    )
    assert ending in str(template_killed(exit_code, 0))


def test_a_worker_that_hangs_says_where():
    stack = 'Thread 0x1 (most recent call first):\n  File "/x/feature.py", line 12 in parse\n  File "/x/y.py", line 3\n'
    facts = WorkerFacts(0, 7, "a batch of 5 rows", stack=stack)

    assert str(hangs(facts, 75.2, 0.0123, "sleeping")) == (
        "worker 0 (pid 7) has been at a batch of 5 rows for 75 s; half of the batches take less than 0.0123 s; "
        "it is in /x/feature.py, line 12 in parse. Look at what it waits for; "
        "data_config.num_workers: 0 runs the same in the training process"
    )
    assert facts.cause is not None
    assert str(facts.cause) == f"in a worker process:\n\n{stack}"


def test_without_a_stack_its_state_is_told():
    assert "for 75 s; its state is 'disk-sleep'. " in str(hangs(WORKER, 75, None, "disk-sleep"))


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (BATCH, "a batch of 6 rows"),
        (with_row_ids(BATCH, 0, 40), "rows 40 to 45 of a.parquet"),
        (with_row_ids(BATCH, 5, 40), "rows 40 to 45 of file 5"),
        (
            with_row_ids(BATCH, 0, 40).take(pa.array([3, 1])),
            "2 scattered rows, the first of them row 43 of a.parquet",
        ),
        (with_row_ids(BATCH, 0, 40).slice(0, 0), "a batch of 0 rows"),
    ],
)
def test_rows_of_a_batch(batch, text):
    assert rows_of(batch, ["a.parquet"]) == text
