"""Workers: the same results in the same order, whatever is done first; bounded; errors in their turn."""

import traceback
from functools import partial

import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.data.parallel_map import ParallelMap
from penstock.runtime.budget import Share
from penstock.runtime.worker_process import WorkerStack
from tests.data import worker_functions as functions
from tests.data.streams import stream_of_sizes
from tests.readers.samples import take


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
