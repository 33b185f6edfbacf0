"""What is learnt on the way: the room of results, and how long a batch takes."""

from penstock.data.workers.patience import Durations, Patience
from penstock.data.workers.room import LEAST_BYTES, ResultRoom

MB = 1_000_000


def test_before_the_first_result_a_batch_may_take_its_part_of_the_memory():
    room = ResultRoom(10 * MB)

    assert room.for_result_of(1 * MB) == 9 * MB
    assert room.for_result_of(11 * MB) == LEAST_BYTES


def test_room_follows_the_largest_result_and_comes_back_slowly():
    room = ResultRoom(10 * MB)
    room.learn(MB, LEAST_BYTES + MB)
    assert room.for_result_of(2 * MB) == LEAST_BYTES + 2.5 * MB

    room.learn(MB, LEAST_BYTES + 4 * MB)
    assert room.for_result_of(MB) == LEAST_BYTES + 5 * MB

    room.learn(MB, 0)
    assert room.for_result_of(MB) == LEAST_BYTES + 4.5 * MB


def test_what_does_not_grow_with_the_batch_says_nothing_about_larger_ones():
    room = ResultRoom(10 * MB)
    room.learn(100, 20_000)

    assert room.for_result_of(MB) == LEAST_BYTES


def test_a_batch_hangs_past_both_limits():
    durations = Durations()
    patience = Patience(least_seconds=60, times_median=50)
    assert durations.median_seconds is None
    assert not durations.too_long(60, patience)
    assert durations.too_long(61, patience)

    for seconds in (0.1, 2.0, 30.0):
        durations.add(seconds)

    assert durations.median_seconds == 2.0
    assert not durations.too_long(100, patience)
    assert durations.too_long(101, patience)
