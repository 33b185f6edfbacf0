"""Shares of the memory budget: leased, returned, waited for, refused with the numbers."""

import threading

import pytest

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB
from penstock.runtime.budget import MemoryBudget


def test_a_request_larger_than_the_share_names_the_setting():
    share = MemoryBudget(64 * MIB).share("shuffle", 48 * MIB, setting="data_config.shuffle_buffer")

    with pytest.raises(
        BudgetExceeded,
        match=r"shuffle needs 49MiB at once but may hold 48MiB; raise data_config.shuffle_buffer",
    ):
        share.acquire(49 * MIB)


def test_a_waiting_thread_gets_the_bytes_that_another_returns():
    share = MemoryBudget(MIB).share("queue", MIB)
    share.acquire(MIB)
    done = threading.Event()

    def wait_for_bytes() -> None:
        share.acquire(MIB)
        done.set()

    thread = threading.Thread(target=wait_for_bytes)
    thread.start()
    assert not done.wait(0.05)
    share.release(MIB)
    assert done.wait(120)
    thread.join()


def test_a_waiting_thread_gives_up_when_it_is_told_to():
    share = MemoryBudget(MIB).share("queue", MIB)
    share.acquire(MIB)
    closed = threading.Event()
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(share.acquire(1, give_up=closed.is_set)))
    thread.start()

    closed.set()
    share.wake()
    thread.join(120)

    assert answers == [False]
