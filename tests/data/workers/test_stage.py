"""Workers: the same items in the same order, whatever is done first; bounded; errors in their turn."""

import json
import logging
import os
import traceback
from functools import partial

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.data.workers.stage import in_workers
from penstock.data.workers.transport import ViewKept
from penstock.runtime.budget import Share
from penstock.runtime.worker_process import WorkerError, WorkerStack
from tests.data.streams import stream_of_sizes
from tests.data.workers import functions
from tests.readers.samples import take

SIZES = [4, 0, 1, 7, 3]


class Failing:
    """A source whose third batch cannot be read."""

    def __init__(self, source):
        self._source = source

    def __iter__(self):
        for number, batch in enumerate(self._source):
            if number == 2:
                raise OSError("the disk is gone")
            yield batch

    def __getattr__(self, name):
        return getattr(self._source, name)


@pytest.fixture(scope="module")
def numbers():
    """Workers that give the numbers of a batch; kept over many tests, as over many epochs."""
    with in_workers(stream_of_sizes([]), functions.numbers_of, 2, Share("workers", MIB)) as stage:
        yield stage


def over(stage, sizes):
    """The same workers over another source."""
    stage.set_epoch(0)
    stage._source = stream_of_sizes(sizes)
    return stage


def test_results_have_every_array_and_memory_of_their_own():
    with in_workers(stream_of_sizes([3, 2]), functions.described, 1, Share("workers", MIB)) as stage:
        items = list(stage)

    assert [item["doubled"].tolist() for item in items] == [[0, 2, 4], [6, 8]]
    assert [item["numbers"].tolist() for item in items] == [[0, 1, 2], [3, 4]]
    assert [item["backwards"].tolist() for item in items] == [[2, 1, 0], [4, 3]]
    assert [item["ones"].tolist() for item in items] == [[1, 1, 1], [1, 1]]
    assert [item["words"] for item in items] == ["word 0 word 1 word 2", "word 3 word 4"]


def test_record_batches_come_back_as_they_were():
    expected = list(stream_of_sizes(SIZES))
    with in_workers(stream_of_sizes(SIZES), functions.same, 2, Share("workers", MIB)) as stage:
        assert list(stage) == expected


def test_items_come_in_the_order_of_the_source_whoever_is_done_first(tmp_path):
    function = partial(functions.first_is_last, str(tmp_path / "second is done"))
    with in_workers(stream_of_sizes([1] * 20), function, 3, Share("workers", MIB)) as stage:
        assert list(stage) == [[number] for number in range(20)]


def test_it_resumes_after_every_item(numbers):
    expected = list(over(numbers, SIZES))
    assert expected == [[0, 1, 2, 3], [4], list(range(5, 12)), [12, 13, 14]]
    for stop in range(len(expected) + 1):
        taken = take(over(numbers, SIZES), stop)
        saved = json.loads(json.dumps(numbers.state_dict()))
        other = over(numbers, SIZES)
        other.load_state_dict(saved)
        assert taken + list(other) == expected


@settings(max_examples=60)
@given(sizes=st.lists(st.integers(0, 40), max_size=12), epoch=st.integers(0, 3), data=st.data())
def test_any_stop_point_in_any_epoch(numbers, sizes, epoch, data):
    source = stream_of_sizes(sizes)
    source.set_epoch(epoch)
    expected = [functions.numbers_of(batch) for batch in source]
    stop = data.draw(st.integers(0, len(expected)))
    stage = over(numbers, sizes)
    stage.set_epoch(epoch)
    taken = take(stage, stop)
    saved = stage.state_dict()

    stage.set_epoch(7)
    stage.load_state_dict(saved)

    assert taken + list(stage) == expected


def test_leaving_a_loop_and_starting_another_continues(numbers):
    stage = over(numbers, SIZES)

    assert take(stage, 1) + take(stage, 2) + list(stage) == [
        [0, 1, 2, 3],
        [4],
        list(range(5, 12)),
        [12, 13, 14],
    ]
    assert list(stage) == []


def test_the_same_processes_serve_every_epoch_and_end_with_close():
    with in_workers(stream_of_sizes([1] * 12), functions.process_of, 2, Share("workers", MIB)) as stage:
        assert stage.pids == []
        seen = []
        for epoch in range(3):
            stage.set_epoch(epoch)
            seen.append(set(stage))
        pids = stage.pids
        assert seen == [set(pids)] * 3
        assert os.getpid() not in pids
        # A process and not its number, which another may have a moment later.
        processes = [psutil.Process(pid) for pid in pids]
    assert stage.pids == []
    assert [process.is_running() for process in processes] == [False, False]


def test_closing_keeps_the_place_and_gives_the_memory_back():
    source, share = stream_of_sizes([10] * 30), Share("workers", MIB)
    stage = in_workers(source, functions.numbers_of, 2, share)
    first = take(stage, 3)
    assert share.held_bytes > 0

    stage.close()
    stage.close()

    assert share.held_bytes == 0
    assert source.place.row == 30
    with stage:
        assert first + list(stage) == [list(range(start, start + 10)) for start in range(0, 300, 10)]


def test_what_is_in_flight_stays_within_the_share():
    share = Share("workers", 300_000)
    with in_workers(stream_of_sizes([1] * 40), functions.larger, 2, share) as stage:
        assert [(len(item), item[0]) for item in stage] == [(100_000, 1)] * 40
    assert 100_000 < share.peak_bytes <= 300_000


@pytest.mark.parametrize("limit_bytes", [1, 1000, 150_000])
def test_a_batch_or_result_without_room_is_worked_on_here(limit_bytes, caplog):
    sizes = [1, 3, 1, 2, 1]
    with (
        caplog.at_level(logging.WARNING),
        in_workers(stream_of_sizes(sizes), functions.larger, 2, Share("workers", limit_bytes)) as stage,
    ):
        assert [len(item) for item in stage] == [size * 100_000 for size in sizes]
    assert len(caplog.messages) == 1, "told once"
    assert "Lower data_config.batch_size, or raise memory.limit" in caplog.messages[0]


def test_finish_sees_the_result_and_its_batch_in_place():
    def finish(result, batch):
        return int(result["doubled"].sum()), batch.column("word").to_pylist()

    with in_workers(
        stream_of_sizes([2, 1]), functions.described, 1, Share("workers", MIB), finish=finish
    ) as stage:
        assert list(stage) == [(2, ["word 0", "word 1"]), (4, ["word 2"])]


def test_finish_must_copy_what_it_returns():
    with (
        in_workers(
            stream_of_sizes([2]),
            functions.described,
            1,
            Share("workers", MIB),
            finish=lambda result, _: result,
        ) as stage,
        pytest.raises(ViewKept, match="copy what is needed"),
    ):
        list(stage)


def test_an_error_of_the_function_arrives_in_its_turn_as_what_it_was():
    source = stream_of_sizes([4, 3, 4, 2])
    with in_workers(source, functions.bad_seven, 2, Share("workers", MIB)) as stage:
        assert take(stage, 2) == [[0, 1, 2, 3], [4, 5, 6]]
        pids = stage.pids
        with pytest.raises(DataError) as caught:
            list(stage)
        assert str(caught.value) == "a.parquet: row 7: column 'number': value 7 is bad"
        assert stage.state_dict()["row"] == 7
        assert stage.pids == pids, "workers that raised are in order"
    text = "".join(traceback.format_exception(caught.value))
    assert isinstance(caught.value.__cause__, WorkerStack)
    assert "in bad_seven" in text


def test_an_error_that_cannot_travel_is_told_in_words():
    with (
        in_workers(stream_of_sizes([1]), functions.raises_unpicklable, 1, Share("workers", MIB)) as stage,
        pytest.raises(WorkerError, match=r"^a worker process failed: Unpicklable: onetwo$"),
    ):
        list(stage)


def test_a_function_that_keeps_views_is_told():
    with (
        in_workers(stream_of_sizes([2]), functions.keeps_views, 1, Share("workers", MIB)) as stage,
        pytest.raises(ViewKept),
    ):
        list(stage)


def test_an_error_of_the_source_comes_after_the_items_before_it():
    source = Failing(stream_of_sizes([2, 2, 2, 2]))
    with in_workers(source, functions.numbers_of, 2, Share("workers", MIB)) as stage:
        items = iter(stage)
        assert [next(items), next(items)] == [[0, 1], [2, 3]]
        with pytest.raises(OSError, match="the disk is gone"):
            next(items)
        assert stage.state_dict()["row"] == 4


@pytest.mark.parametrize(
    "function",
    [lambda batch: batch.num_rows, type("Local", (), {"__call__": lambda self, batch: 1})()],
    ids=["lambda", "object of a class that no module has"],
)
def test_a_function_that_workers_cannot_load(function):
    with (
        in_workers(stream_of_sizes([1]), function, 1, Share("workers", MIB)) as stage,
        pytest.raises(
            WorkerError, match=r"^worker processes cannot load what they should do \(.*must be in a module"
        ),
    ):
        list(stage)


def test_a_function_of_the_program_that_runs(monkeypatch):
    """The program is not imported again by workers, which would run it again and load what it loads."""
    monkeypatch.setattr(functions.same, "__module__", "__main__")
    monkeypatch.setattr("__main__.same", functions.same, raising=False)
    with (
        in_workers(stream_of_sizes([1]), functions.same, 1, Share("workers", MIB)) as stage,
        pytest.raises(WorkerError, match="not in the program that runs"),
    ):
        list(stage)


def test_nothing_starts_before_it_is_iterated():
    source = stream_of_sizes([1])
    stage = in_workers(source, functions.same, 1, Share("workers", MIB))

    assert (stage.pids, source.num_given) == ([], 0)


def test_no_worker_is_refused():
    with pytest.raises(ValueError, match="at least one worker, not 0"):
        in_workers(stream_of_sizes([1]), functions.same, 0, Share("workers", MIB))


def test_a_new_epoch_does_not_wait_for_what_nobody_wants(tmp_path):
    """Else it would wait for ever: workers go on only when the file is there, which comes later."""
    function = partial(functions.waits_from, 2, str(tmp_path / "go on"))
    with in_workers(stream_of_sizes([1] * 20), function, 2, Share("workers", MIB)) as stage:
        assert take(stage, 2) == [[0], [1]]
        for epoch in (1, 2, 0):
            stage.set_epoch(epoch)
        (tmp_path / "go on").touch()
        assert list(stage) == [[number] for number in range(20)]


def test_large_arrays_are_exact():
    with in_workers(stream_of_sizes([5000] * 6), functions.described, 2, Share("workers", 2 * MIB)) as stage:
        for index, item in enumerate(stage):
            np.testing.assert_array_equal(item["doubled"], 2 * np.arange(5000 * index, 5000 * (index + 1)))
