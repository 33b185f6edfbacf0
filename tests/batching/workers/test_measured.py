"""Measuring decides whether workers help, and changes no batch."""

import logging
import time

import pytest

from penstock.batching.workers.choice import Workers, each_batch
from penstock.batching.workers.measured import Judge, Rule, Timing
from penstock.config.sizes import MIB
from penstock.runtime.budget import Share
from tests.batching.streams import stream_of_sizes
from tests.batching.workers import functions
from tests.readers.samples import take

RULE = Rule(num_batches=4, least_batches=2)


def verdict(most_workers=8, rule=RULE, **seconds):
    judge = Judge(rule, most_workers)
    return [judge.see(Timing(**seconds)) for _ in range(rule.num_batches)][-1]


@pytest.mark.parametrize(
    ("function", "beside", "consumer", "num_workers"),
    [
        (0.010, 0.001, 0.0, 8),
        (0.010, 0.004, 0.0, 3),
        (0.010, 0.001, 0.004, 3),
        (0.010, 0.006, 0.0, 0),
        (0.010, 0.001, 0.020, 0),
        (0.0, 0.0, 0.0, 0),
    ],
    ids=[
        "all in the function",
        "some beside",
        "some in the consumer",
        "much beside",
        "slow consumer",
        "nothing",
    ],
)
def test_workers_where_the_function_takes_twice_as_long_as_all_else(function, beside, consumer, num_workers):
    assert verdict(function=function, beside=beside, consumer=consumer) == num_workers


def test_it_waits_for_enough_batches_or_enough_time():
    judge = Judge(Rule(num_batches=3, most_seconds=100, least_batches=1), 2)
    assert [judge.see(Timing(1, 0.1, 0)) for _ in range(3)] == [None, None, 2]

    judge = Judge(Rule(num_batches=100, most_seconds=3.3, least_batches=2), 2)
    assert [judge.see(Timing(1, 0.1, 0)) for _ in range(3)] == [None, None, 2]

    judge = Judge(Rule(num_batches=100, most_seconds=1, least_batches=2), 2)
    assert [judge.see(Timing(5, 0.1, 0)) for _ in range(2)] == [None, 2]


def test_only_the_last_batches_count():
    """The first ones fill the queue behind: their consumer seems to take no time."""
    judge = Judge(Rule(num_batches=6), 4)
    for _ in range(3):
        judge.see(Timing(0.010, 0.001, 0.0))
    for _ in range(2):
        judge.see(Timing(0.010, 0.001, 0.020))

    assert judge.see(Timing(0.010, 0.001, 0.020)) == 0


def finish(result, _):
    return list(result)


def measured(function, count=2, rule=RULE, sizes=(2,) * 12):
    workers = Workers(count, Share("workers", MIB), measured=True, rule=rule)
    return each_batch(stream_of_sizes(sizes), function, finish, workers)


PAIRS = [[number, number + 1] for number in range(0, 24, 2)]


def test_it_goes_over_to_workers_in_the_middle_of_an_epoch(caplog):
    with caplog.at_level(logging.INFO), measured(functions.slow) as stage:
        assert take(stage, 4) == PAIRS[:4]
        assert stage.pids == []
        assert list(stage) == PAIRS[4:]
        pids = stage.pids
        assert len(pids) == 2
        stage.set_epoch(1)
        assert list(stage) == [[1000 + number for number in pair] for pair in PAIRS]
        assert stage.pids == pids
    assert "going on with 2 worker processes" in caplog.text


def test_it_stays_where_workers_would_not_help(caplog):
    with caplog.at_level(logging.INFO), measured(functions.numbers_of) as stage:
        items = []
        for item in stage:
            items.append(item)
            time.sleep(0.002)
        assert items == PAIRS
        assert stage.pids == []
    assert caplog.text.count("worker processes would not help") == 1, "decided once"


@pytest.mark.parametrize("stop", range(13))
def test_any_place_is_the_same_before_and_after(stop):
    with measured(functions.slow, count=1, rule=Rule(num_batches=3)) as stage:
        taken = take(stage, stop)
        saved = stage.state_dict()
    plain = each_batch(stream_of_sizes((2,) * 12), functions.numbers_of, finish)
    plain.load_state_dict(saved)

    assert taken + list(plain) == PAIRS


@pytest.mark.parametrize(
    "workers", [None, Workers(0, Share("workers", 1)), Workers(0, Share("workers", 1), True)]
)
def test_without_workers_nothing_is_started(workers):
    stage = each_batch(stream_of_sizes((2,) * 12), functions.numbers_of, finish, workers)

    assert list(stage) == PAIRS
    assert stage.pids == []


def test_work_that_workers_cannot_load_goes_on_here(caplog):
    """Nobody asked for workers, so that they are no reason to fail."""

    def local(batch):
        return functions.slow(batch)

    with measured(local) as stage:
        assert list(stage) == PAIRS
        assert stage.pids == []
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("going on without worker processes: worker processes cannot load")
