import numpy as np
import pytest

from penstock.runtime.collectives import Collectives
from penstock.runtime.world import World
from tests.distributed.two_ranks import run_on_two_ranks


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
