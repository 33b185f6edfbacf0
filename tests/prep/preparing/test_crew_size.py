"""How many worker processes there are."""

from penstock.config.sizes import GIB, MIB
from penstock.prep.preparing.crew_size import CrewSize, Room, crew_size


def room(limit_bytes: int, cores: int = 12) -> Room:
    return Room(cores, limit_bytes, process_bytes=100 * MIB, batch_bytes=2 * MIB)


def test_two_cores_are_left_and_there_is_always_one_worker():
    assert crew_size(None, 1000, room(8 * GIB)) == CrewSize(10, 10, 8 * GIB)
    assert crew_size(None, 1000, room(8 * GIB, cores=2)).most == 1
    assert crew_size(None, 1000, room(MIB)).start == 1


def test_no_more_than_tasks():
    assert crew_size(None, 3, room(8 * GIB)).most == 3
    assert crew_size(16, 0, room(8 * GIB)).most == 1


def test_what_the_run_file_says_may_be_more_than_cores():
    assert crew_size(16, 1000, room(8 * GIB)).most == 16


def test_where_memory_is_not_ample_a_few_begin():
    assert crew_size(None, 1000, room(GIB)) == CrewSize(2, 10, GIB)


def test_the_number_doubles_while_there_is_room():
    size = CrewSize(start=1, most=10, limit_bytes=1000 * MIB)

    assert size.addition(2, 300 * MIB, 80 * MIB) == 2
    assert size.addition(4, 460 * MIB, 80 * MIB) == 4
    assert size.addition(8, 780 * MIB, 80 * MIB) == 2
    assert size.addition(8, 780 * MIB, 160 * MIB) == 1
    assert size.addition(8, 999 * MIB, 80 * MIB) == 0
    assert size.addition(10, 300 * MIB, 80 * MIB) == 0
