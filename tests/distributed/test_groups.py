"""The process group of a run, and what its ranks exchange."""

import numpy as np
import pytest
import torch.distributed as dist

from penstock.config.errors import ConfigError
from penstock.distributed.groups import process_group
from penstock.runtime.world import Collectives, OneProcess, World
from tests.distributed.two_ranks import run_on_two_ranks


def test_one_process_needs_no_port_and_leaves_nothing_open():
    with process_group(World()) as collectives:
        assert dist.get_world_size() == 1
        assert isinstance(collectives, OneProcess)

    assert not dist.is_initialized()


def test_an_open_group_is_used_and_the_own_one_is_closed_when_the_run_fails():
    with process_group(World()):
        with process_group(World()):
            pass
        assert dist.is_initialized()
    with pytest.raises(ZeroDivisionError), process_group(World()):
        raise ZeroDivisionError

    assert not dist.is_initialized()


def test_a_group_of_another_size_is_refused():
    with process_group(World()), pytest.raises(ConfigError) as error, process_group(World(0, 2)):
        pass

    assert str(error.value) == "this run has 2 ranks, but a group of 1 is open already"


@pytest.mark.parametrize("variables", [{}, {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}])
def test_a_missing_address_and_peers_that_never_come_are_one_line(monkeypatch, variables):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError) as error, process_group(World(0, 2), timeout_seconds=0.2):
        pass

    assert str(error.value).startswith("rank 0 cannot join the others: ")
    assert variables or "MASTER_ADDR" in str(error.value)
    assert "\n" not in str(error.value)


def everything(world: World, collectives: Collectives) -> dict[str, object]:
    """One call of each kind, with other sizes on each rank."""
    rank = world.rank
    rows = np.arange(2 * (rank + 1), dtype=np.float32).reshape(-1, 2)
    parts = [np.full(rank, 10 * rank, np.int16), np.full(2, 10 * rank + 1, np.int16)]
    collectives.barrier()
    return {
        "sum": collectives.sum(np.array([1.5, rank])).tolist(),
        "sum of one number": collectives.sum(np.array(rank + 1)).item(),
        "rows": [part.tolist() for part in collectives.gather(rows)],
        "one number": [part.item() for part in collectives.gather(np.array(rank))],
        "texts": [part.tolist() for part in collectives.gather(np.array(["a", "bc"])[: rank + 1])],
        "empty": [part.shape for part in collectives.gather(np.zeros((0, 3)))],
        "one empty": [part.tolist() for part in collectives.gather(np.arange(rank))],
        "parts": [(part.dtype.name, part.tolist()) for part in collectives.all_to_all(parts)],
    }


@pytest.mark.slow
def test_ranks_exchange_arrays():
    first, second = run_on_two_ranks(everything)

    assert first == {
        "sum": [3.0, 1.0],
        "sum of one number": 3,
        "rows": [[[0.0, 1.0]], [[0.0, 1.0], [2.0, 3.0]]],
        "one number": [0, 1],
        "texts": [["a"], ["a", "bc"]],
        "empty": [(0, 3), (0, 3)],
        "one empty": [[], [0]],
        "parts": [("int16", []), ("int16", [10])],
    }
    assert second == {**first, "parts": [("int16", [1, 1]), ("int16", [11, 11])]}
