"""Runs a function of a test in processes that form a gloo group, and gives back what each returned."""

import os
import random
import socket
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

import torch

from penstock.distributed.groups import process_group
from penstock.runtime.world import World

TIMEOUT_SECONDS = 120


def run_on_two_ranks(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """`function(world, collectives, *arguments)` on ranks 0 and 1; it must stand at the top of its module."""
    return run_on_ranks(2, function, *arguments)


def run_on_ranks(num_ranks: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The same on any number of ranks."""
    context = get_context("spawn")
    answers = context.SimpleQueue()
    port = _free_port()
    ranks = [
        context.Process(
            target=_rank, args=(World(rank, num_ranks, rank), port, answers, function, arguments), daemon=True
        )
        for rank in range(num_ranks)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(TIMEOUT_SECONDS)
    outcomes = [answers.get() for _ in ranks if not answers.empty()]
    problems = [problem for _, problem, _ in outcomes if problem]
    assert not problems, "\n".join(problems)
    assert len(outcomes) == num_ranks, "a rank died or hangs"
    return [answer for _, _, answer in sorted(outcomes, key=lambda outcome: outcome[0])]


def _rank(
    world: World, port: int, answers: Any, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    try:
        with process_group(world, timeout_seconds=60) as collectives:
            answer = function(world, collectives, *arguments)
            collectives.barrier()  # the first rank keeps the group's address book; it must not leave first
    except Exception:
        answers.put((world.rank, f"rank {world.rank}: {traceback.format_exc()}", None))
    else:
        answers.put((world.rank, "", answer))


def _free_port() -> int:
    """Below the ports that the system gives to whoever asks for any: until the ranks listen, nobody is given it."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("100 ports are taken")
