"""Workers: the same results in the same order, whatever is done first; bounded; errors in their turn."""

import json
import os
import traceback
from functools import partial

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.data.parallel_map import ParallelMap
from penstock.runtime.budget import Share
from penstock.runtime.worker_process import WorkerStack
from tests.data import worker_functions as functions
from tests.data.streams import stream_of_sizes
from tests.readers.samples import take

SIZES = [4, 0, 1, 7, 3]
NUMBERS = [[0, 1, 2, 3], [4], list(range(5, 12)), [12, 13, 14]]


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


def mapped(sizes, function, num_workers=2, limit_bytes=MIB):
    return ParallelMap(stream_of_sizes(sizes), function, num_workers, Share("workers", limit_bytes))


def results(stage, count=None):
    pairs = stage if count is None else take(stage, count)
    return [result for result, _ in pairs]


@pytest.fixture(scope="module")
def numbers():
    """Workers that give the numbers of a batch; kept over many tests, as over many epochs."""
    with mapped([], functions.numbers_of) as stage:
        yield stage


def over(stage, sizes):
    """The same workers over another source."""
    stage.set_epoch(0)
    stage._source = stream_of_sizes(sizes)
    return stage


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 40), max_size=8), epoch=st.integers(0, 3), data=st.data())
def test_any_stop_point_in_any_epoch(numbers, sizes, epoch, data):
    source = stream_of_sizes(sizes)
    source.set_epoch(epoch)
    expected = [functions.numbers_of(batch) for batch in source]
    stop = data.draw(st.integers(0, len(expected)))
    stage = over(numbers, sizes)
    stage.set_epoch(epoch)
    taken = results(stage, stop)
    saved = json.loads(json.dumps(stage.state_dict()))

    stage.set_epoch(7)
    stage.load_state_dict(saved)

    assert taken + results(stage) == expected


def test_the_same_processes_serve_every_epoch_and_end_with_close():
    with mapped([1] * 12, functions.process_of) as stage:
        assert stage.pids == []
        seen = []
        for epoch in range(3):
            stage.set_epoch(epoch)
            seen.append(set(results(stage)))
        pids = stage.pids
        assert set().union(*seen) <= set(pids)
        assert os.getpid() not in pids
        # A process and not its number, which another may have a moment later.
        processes = [psutil.Process(pid) for pid in pids]
    assert stage.pids == []
    assert [process.is_running() for process in processes] == [False, False]


def test_closing_keeps_the_position_and_gives_the_memory_back():
    source, share = stream_of_sizes([10] * 30), Share("workers", MIB)
    stage = ParallelMap(source, functions.numbers_of, 2, share)
    pairs = iter(stage)
    first = [next(pairs)[0] for _ in range(3)]
    assert share.held_bytes > 0

    stage.close()
    stage.close()

    assert share.held_bytes == 0
    assert source.position.row == 30
    with stage:
        assert first + results(stage) == [list(range(start, start + 10)) for start in range(0, 300, 10)]


@pytest.mark.parametrize("limit_bytes", [1, 150_000, 350_000])
def test_what_is_in_flight_stays_within_the_share(limit_bytes):
    """A batch that is larger than the share passes alone."""
    share, sizes = Share("workers", limit_bytes), [1000, 4000, 1000, 2000, 1000] * 3
    source = stream_of_sizes(sizes)
    with ParallelMap(source, functions.numbers_of, 2, share) as stage:
        assert [len(result) for result in results(stage)] == sizes
    assert 0 < share.peak_bytes <= limit_bytes
    assert share.held_bytes == 0


def test_an_error_of_the_function_arrives_in_its_turn_as_what_it_was():
    with mapped([4, 3, 4, 2], functions.bad_seven) as stage:
        assert results(stage, 2) == [[0, 1, 2, 3], [4, 5, 6]]
        with pytest.raises(DataError) as caught:
            list(stage)
        assert str(caught.value) == "a.parquet: row 7: column 'number': value 7 is bad"
        assert stage.state_dict()["row"] == 7
    assert isinstance(caught.value.__cause__, WorkerStack)
    assert "in bad_seven" in "".join(traceback.format_exception(caught.value))


def test_an_error_of_the_source_comes_after_the_results_before_it():
    source = Failing(stream_of_sizes([2, 2, 2, 2]))
    with ParallelMap(source, functions.numbers_of, 2, Share("workers", MIB)) as stage:
        pairs = iter(stage)
        assert [next(pairs)[0], next(pairs)[0]] == [[0, 1], [2, 3]]
        with pytest.raises(OSError, match="the disk is gone"):
            next(pairs)
        assert stage.state_dict()["row"] == 4


def test_a_new_epoch_does_not_wait_for_what_nobody_wants(tmp_path):
    """Else it would wait for ever: workers go on only when the file is there, which comes later."""
    function = partial(functions.waits_from, 2, str(tmp_path / "go on"))
    with mapped([1] * 20, function) as stage:
        assert results(stage, 2) == [[0], [1]]
        for epoch in (1, 2, 0):
            stage.set_epoch(epoch)
        (tmp_path / "go on").touch()
        assert results(stage) == [[number] for number in range(20)]
