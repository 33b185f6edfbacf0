"""The background thread: bounded in bytes, ends when told, passes errors on."""

import threading
import time
import traceback
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.data.prefetch import Prefetch
from penstock.readers.stream import StreamPosition
from penstock.runtime.budget import Share
from tests.data.streams import ListStream, stream_of_sizes
from tests.readers.samples import flat, take
from tests.waiting import wait_until


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "penstock-prefetch"]


class _Failing(ListStream):
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in super().__iter__():
            if self.num_given == 3:
                raise ValueError("the third batch is bad")
            yield batch


def test_the_thread_works_ahead_as_far_as_the_bytes_allow() -> None:
    source = stream_of_sizes([10] * 20)
    share = Share("prefetch", 35)
    with Prefetch(source, share, num_bytes=lambda _: 10) as stage:
        iterator = iter(stage)
        next(iterator)
        # One is handed out, three wait, one is in the thread's hands and waits for its bytes.
        wait_until(lambda: source.num_given == 5)
        time.sleep(0.02)
        assert source.num_given == 5
        assert share.held_bytes == 30
    assert share.held_bytes == 0


def test_an_error_arrives_in_its_turn_with_its_traceback() -> None:
    with Prefetch(_Failing([[1], [2], [3], [4]]), Share("prefetch", 1000)) as stage:
        assert flat(take(stage, 2)) == [1, 2]
        with pytest.raises(ValueError, match="the third batch is bad") as caught:
            list(stage)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].line == 'raise ValueError("the third batch is bad")'
        assert stage.state_dict()["row"] == 2
    assert _threads() == []


@pytest.mark.parametrize("num_taken", [0, 1, 3])
def test_closing_early_ends_the_thread_and_keeps_the_place(num_taken: int) -> None:
    source = stream_of_sizes([10] * 50)
    share = Share("prefetch", 25)
    stage = Prefetch(source, share, num_bytes=lambda _: 10)
    take(stage, num_taken)
    stage.close()

    assert _threads() == []
    assert share.held_bytes == 0
    assert stage.state_dict() == source.state_dict()
    assert source.position == StreamPosition(epoch=0, row=10 * num_taken)
    stage.close()


def test_what_is_held_of_a_loop_that_was_left_is_given_back() -> None:
    share = Share("prefetch", 20)
    with Prefetch(stream_of_sizes([10] * 6), share, num_bytes=lambda _: 10, hold_handed_out=True) as stage:
        first = flat(take(stage, 1))
        second = flat(take(stage, 1))
        assert first + second + flat(stage) == list(range(60))
    assert share.held_bytes == 0
