"""How many worker processes there are."""

from penstock.config.sizes import GIB, MIB
from penstock.prep.preparing.crew_size import Room, crew_size

ROOM = Room(cores=12, limit_bytes=8 * GIB, process_bytes=100 * MIB, batch_bytes=2 * MIB)


def small(limit_bytes: int) -> Room:
    return Room(12, limit_bytes, ROOM.process_bytes, ROOM.batch_bytes)


def test_two_cores_are_left_and_there_is_always_one_worker():
    assert crew_size(None, 1000, ROOM).count == 10
    assert crew_size(None, 1000, Room(2, 8 * GIB, MIB, MIB)).count == 1
    assert crew_size(None, 1000, small(MIB)).count == 1


def test_no_more_than_tasks():
    assert crew_size(None, 3, ROOM).count == 3
    assert crew_size(16, 0, ROOM).count == 1


def test_what_the_run_file_says_may_be_more_than_cores():
    assert crew_size(16, 1000, ROOM).count == 16


def test_fewer_where_memory_says_so():
    size = crew_size(None, 1000, small(512 * MIB))

    assert (size.count, size.reason) == (
        3,
        "10 worker processes of 106MiB each do not fit into memory.limit (512MiB): going on with 3",
    )
