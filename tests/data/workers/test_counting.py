"""How many workers there are."""

import pytest

from penstock.config.sizes import GIB, MIB
from penstock.data.workers.counting import (
    TEMPLATE_BYTES,
    arena_bytes,
    plan_workers,
    worker_bytes,
    workers_that_fit,
)


@pytest.mark.parametrize(
    ("wanted", "cores", "megabytes_left", "count", "reason"),
    [
        (0, 2, 0, 0, None),
        (2, 2, 200, 2, None),
        (8, 2, 10_000, 2, "8 workers are wanted, but there are 2 cores"),
        (
            8,
            16,
            350,
            3,
            "8 workers are wanted, but 3 fit into the 350MiB that are left",
        ),
        (
            1,
            4,
            -5,
            0,
            "1 workers are wanted, but 0 fit into the 0B that are left",
        ),
    ],
)
def test_as_many_as_cores_and_memory_allow(wanted, cores, megabytes_left, count, reason):
    if reason is not None and "left" in reason:
        reason += ", each with 100MiB; raise memory.limit for more"
    assert workers_that_fit(wanted, cores, megabytes_left * MIB, 100 * MIB) == (count, reason)


def test_a_plan_names_every_byte():
    plan = plan_workers(2, cores=4, bytes_left=4 * GIB, batch_bytes=2 * MIB)

    assert (plan.count, plan.measured, plan.reason) == (2, False, None)
    assert plan.arena_bytes == arena_bytes(2, 2 * MIB)
    assert plan.arena_bytes + plan.process_bytes == TEMPLATE_BYTES + 2 * worker_bytes(2 * MIB)


def test_a_number_that_is_not_given_leaves_a_core_to_training():
    plan = plan_workers(None, cores=4, bytes_left=4 * GIB, batch_bytes=2 * MIB)
    assert (plan.count, plan.measured) == (3, True)

    alone = plan_workers(None, cores=1, bytes_left=4 * GIB, batch_bytes=2 * MIB)
    assert (alone.count, alone.arena_bytes, alone.process_bytes, alone.reason) == (0, 0, 0, None)


def test_fewer_than_wanted_is_told(caplog):
    plan_workers(8, cores=2, bytes_left=4 * GIB, batch_bytes=2 * MIB)

    assert caplog.messages == [
        "data_config.num_workers: going on with 2; 8 workers are wanted, but there are 2 cores"
    ]


def test_a_plan_never_takes_more_than_is_left():
    for bytes_left in range(0, 2 * GIB, 37 * MIB):
        plan = plan_workers(16, cores=16, bytes_left=bytes_left, batch_bytes=3 * MIB)
        assert plan.arena_bytes + plan.process_bytes <= bytes_left
        assert (plan.reason is None) == (plan.count == 16)
