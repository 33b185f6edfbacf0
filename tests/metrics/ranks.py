"""Ranks as threads of one process: real exchanges, without starting processes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np


class ThreadCollectives:
    """`Collectives` between threads; every one must call, in the same order."""

    def __init__(self, rank, board, barrier):
        self._rank, self._board, self._barrier = rank, board, barrier

    def _exchange(self, content):
        self._board[self._rank] = content
        self._barrier.wait()
        everyone = list(self._board)
        self._barrier.wait()
        return everyone

    def sum(self, array):
        return np.asarray(sum(self._exchange(np.array(array))))

    def gather(self, array):
        return [np.array(part) for part in self._exchange(array)]

    def all_to_all(self, parts):
        return [np.array(sent[self._rank]) for sent in self._exchange(list(parts))]

    def barrier(self):
        self._barrier.wait()


def on_ranks(num_ranks, work):
    """What `work(rank, collectives)` gives on each of the ranks."""
    # A rank that fails breaks the barrier; the limit is only for ranks that exchange unequally often.
    board, barrier = [None] * num_ranks, threading.Barrier(num_ranks, timeout=120)

    def as_rank(rank):
        try:
            return work(rank, ThreadCollectives(rank, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(num_ranks) as pool:
        pending = [pool.submit(as_rank, rank) for rank in range(num_ranks)]
    errors = [error for future in pending if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error  # the cause, before what it did to the others
    return [future.result() for future in pending]
