"""Measuring decides whether workers help, and changes no batch."""

import logging
from dataclasses import replace

import pytest

from penstock.config.sizes import MIB
from penstock.data.workers import measured as measuring
from penstock.data.workers.choice import Workers, each_batch
from penstock.data.workers.measured import Judge, Rule, Timing
from penstock.runtime.budget import Share
from tests.data.streams import stream_of_sizes
from tests.data.workers import functions
from tests.readers.samples import take

RULE = Rule(num_batches=4, least_batches=2, first_batches=0)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The time that is measured: none passes unless a function or a test says so."""
    monkeypatch.setattr(measuring, "time", functions.clock)
    return functions.clock


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
    judge = Judge(replace(RULE, num_batches=3, most_seconds=100, least_batches=1), 2)
    assert [judge.see(Timing(1, 0.1, 0)) for _ in range(3)] == [None, None, 2]

    judge = Judge(replace(RULE, num_batches=100, most_seconds=3.3), 2)
    assert [judge.see(Timing(1, 0.1, 0)) for _ in range(3)] == [None, None, 2]

    judge = Judge(replace(RULE, num_batches=100, most_seconds=1), 2)
    assert [judge.see(Timing(5, 0.1, 0)) for _ in range(2)] == [None, 2]


def test_only_the_last_batches_count():
    """The first ones fill the queue behind: their consumer seems to take no time."""
    judge = Judge(replace(RULE, num_batches=6), 4)
    for _ in range(3):
        judge.see(Timing(0.010, 0.001, 0.0))
    for _ in range(2):
        judge.see(Timing(0.010, 0.001, 0.020))

    assert judge.see(Timing(0.010, 0.001, 0.020)) == 0


COMPILES, PARSES = Timing(9.0, 0.001, 0.0), Timing(0.001, 0.001, 0.0)


def test_the_first_batches_do_not_count():
    """They load and compile what is used for the first time: neither their seconds nor their number say anything."""
    judge = Judge(replace(RULE, first_batches=3), 4)

    verdicts = [judge.see(timing) for timing in [COMPILES] * 3 + [PARSES] * 4]

    assert verdicts == [None] * 6 + [0]


def test_a_batch_for_which_something_is_compiled_later_does_not_count():
    judge = Judge(replace(RULE, num_batches=8, most_seconds=100), 4)

    verdicts = [judge.see(timing) for timing in [PARSES] * 6 + [COMPILES, PARSES]]

    assert verdicts == [None] * 7 + [0]


def test_while_batches_wait_to_be_used_nothing_is_started():
    """A queue that fills asks without a pause, however slow the consumer is; the verdict waits until it shows."""
    judge = Judge(RULE, 4)
    slow = Timing(0.010, 0.001, 0.0)

    assert [judge.see(replace(slow, awaited=False)) for _ in range(20)] == [None] * 20
    assert [judge.see(slow) for _ in range(2)] == [None, 4]


def test_a_full_queue_shows_that_the_consumer_is_slow():
    judge = Judge(RULE, 4)

    assert [judge.see(Timing(0.010, 0.001, 0.020, awaited=False)) for _ in range(4)][-1] == 0


def finish(result, _):
    return list(result)


def measured(function, count=2, rule=RULE, sizes=(2,) * 12, queue=None):
    workers = Workers(count, Share("workers", MIB), measured=True, rule=rule, queue=queue)
    return each_batch(stream_of_sizes(sizes), function, finish, workers)


PAIRS = [[number, number + 1] for number in range(0, 24, 2)]


def test_it_goes_over_to_workers_in_the_middle_of_an_epoch(caplog):
    with caplog.at_level(logging.INFO), measured(functions.takes_20_ms) as stage:
        assert take(stage, 4) == PAIRS[:4]
        assert stage.pids == []
        assert list(stage) == PAIRS[4:]
        pids = stage.pids
        assert len(pids) == 2
        stage.set_epoch(1)
        assert list(stage) == [[1000 + number for number in pair] for pair in PAIRS]
        assert stage.pids == pids
    assert "going on with 2 worker processes" in caplog.text


def test_compiling_starts_no_workers(clock, caplog):
    costs = iter([20.0, 5.0] + [0.001] * 10)

    def parse(batch):
        clock.now += next(costs)
        return functions.numbers_of(batch)

    def pack(result, _):
        clock.now += 0.001
        return list(result)

    workers = Workers(2, Share("workers", MIB), measured=True, rule=replace(RULE, first_batches=2))
    with (
        caplog.at_level(logging.INFO),
        each_batch(stream_of_sizes((2,) * 12), parse, pack, workers) as stage,
    ):
        assert list(stage) == PAIRS
        assert stage.pids == []
    [told] = caplog.messages
    assert told.startswith(
        "of a batch's time parsing takes 1 ms, reading and packing 1 ms, the consumer 0 ms"
    )
    assert told.endswith("worker processes would not help")


def test_nothing_is_started_while_the_queue_behind_fills():
    queue = Share("prefetch", MIB)
    with measured(functions.takes_20_ms, queue=queue) as stage:
        items = []
        for item in stage:
            items.append(item)
            queue.acquire(1)
        assert items == PAIRS
        assert stage.pids == []


def test_it_stays_where_workers_would_not_help(clock, caplog):
    with caplog.at_level(logging.INFO), measured(functions.takes_20_ms) as stage:
        items = []
        for item in stage:
            items.append(item)
            clock.now += 0.030
        assert items == PAIRS
        assert stage.pids == []
    assert caplog.text.count("worker processes would not help") == 1, "decided once"


@pytest.mark.parametrize("stop", [0, 2, 3, 4, 5, 9, 12])
def test_any_place_is_the_same_before_and_after(stop):
    with measured(functions.takes_20_ms, count=1, rule=replace(RULE, num_batches=3)) as stage:
        taken = take(stage, stop)
        assert bool(stage.pids) == (stop > 3)
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
        return functions.takes_20_ms(batch)

    with measured(local) as stage:
        assert list(stage) == PAIRS
        assert stage.pids == []
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("going on without worker processes: worker processes cannot load")
