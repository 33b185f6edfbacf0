"""Runs a function of a test in processes that form a gloo group, and gives back what each returned."""

import os
import time
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import torch
from torch.distributed import TCPStore

from penstock.distributed.groups import process_group
from penstock.runtime.world import World

TIMEOUT_SECONDS = 400
"""For what takes seconds: on a busy machine, importing torch alone may take a minute."""


def run_on_two_ranks(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """`function(world, collectives, *arguments)` on ranks 0 and 1; it must stand at the top of its module."""
    context = get_context("spawn")
    answers = context.SimpleQueue()
    # As torchrun does it: the parent keeps the address book of the group, at a port that the system gave it.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ranks = [
        context.Process(
            target=_rank,
            args=(World(rank, 2, rank), store.port, answers, function, arguments),
            daemon=True,
        )
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    for process in ranks:
        process.join(max(0.0, deadline - time.monotonic()))
    outcomes = [answers.get() for _ in ranks if not answers.empty()]
    problems = [problem for _, problem, _ in outcomes if problem]
    assert not problems, "\n".join(problems)
    assert len(outcomes) == 2, "a rank died or hangs"
    return [answer for _, _, answer in sorted(outcomes, key=lambda outcome: outcome[0])]


def _rank(
    world: World, port: int, answers: Any, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="True")
    torch.set_num_threads(1)
    try:
        with process_group(world, timeout_seconds=TIMEOUT_SECONDS / 2) as collectives:
            answer = function(world, collectives, *arguments)
            collectives.barrier()  # nobody leaves while another may still exchange something
    except Exception:
        answers.put((world.rank, f"rank {world.rank}: {traceback.format_exc()}", None))
    else:
        answers.put((world.rank, "", answer))
