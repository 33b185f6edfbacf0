"""How many worker processes there are."""

from dataclasses import replace

import pytest

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import GIB, MIB
from penstock.prep.preparing.crew.crew_size import (
    CrewSize,
    Room,
    check_batch_fits,
    check_program_fits,
    crew_size,
)


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


def test_a_batch_that_no_process_can_hold_is_refused_with_the_size_that_fits():
    narrow = Room(cores=12, limit_bytes=238 * MIB, process_bytes=140 * MIB, batch_bytes=500 * MIB)

    with pytest.raises(BudgetExceeded) as error:
        check_batch_fits(500, narrow, apart=True)

    assert str(error.value) == (
        "preprocessing.batch_size: filling, converting and writing 500 samples of 1MiB each takes up to 1.5GiB, but "
        "memory.limit of 238MiB leaves 50MiB for it; set batch_size to 16, or raise memory.limit to 1704MiB"
    )
    check_batch_fits(16, replace(narrow, batch_bytes=16 * MIB), apart=True)
    with pytest.raises(BudgetExceeded, match=r"leaves 98MiB for it; set batch_size to 32, or raise"):
        check_batch_fits(500, narrow, apart=False)


def test_where_no_sample_fits_the_limits_for_all_and_for_one_are_told_together():
    narrow = Room(cores=12, limit_bytes=238 * MIB, process_bytes=140 * MIB, batch_bytes=500 * 80 * MIB)

    with pytest.raises(BudgetExceeded) as error:
        check_batch_fits(500, narrow, apart=True)

    assert str(error.value).endswith(
        "leaves 50MiB for it; raise memory.limit to 120204MiB, or to 444MiB and set batch_size to 1"
    )
    check_batch_fits(500, replace(narrow, limit_bytes=120204 * MIB), apart=True)
    check_batch_fits(1, replace(narrow, limit_bytes=444 * MIB, batch_bytes=80 * MIB), apart=True)


def test_a_limit_below_the_program_is_told_with_one_that_does_for_all_of_it():
    with pytest.raises(BudgetExceeded) as error:
        check_program_fits(room(limit_bytes=80 * MIB), apart=True)

    assert str(error.value) == (
        "memory.limit: is 80MiB, but the program alone takes 100MiB; raise it to 170MiB"
    )
    check_program_fits(room(limit_bytes=170 * MIB), apart=True)


def test_small_batches_are_not_to_blame_for_a_limit_below_the_program():
    check_batch_fits(500, room(limit_bytes=MIB), apart=True)
