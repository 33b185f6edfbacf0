"""The moments and steps of Adam on tables move with their tables between one rank and two."""

from pathlib import Path

import pytest

from penstock.checkpoint import CheckpointStore
from penstock.distributed.groups import process_group
from penstock.distributed.state import load_training_state, training_state
from penstock.runtime.collectives import Collectives
from penstock.runtime.world import World
from tests.distributed.small_model import Training, local
from tests.distributed.two_ranks import run_on_two_ranks

pytestmark = pytest.mark.slow


def resumed_halfway(
    world: World, collectives: Collectives, directory: Path
) -> tuple[list[float], list[float]]:
    """The losses of two more steps after a save, by who saved and by who loaded."""
    before, after = (Training.start("adam", "adam", world) for _ in range(2))
    before.run(range(4))
    store = CheckpointStore(directory, world=world, collectives=collectives)
    store.save(4, training_state(before.model, before.optimizer), {})
    load_training_state(store.latest(), after.model, after.optimizer)
    return before.run(range(4, 6)), after.run(range(4, 6))


def test_two_ranks_resume_bit_equal_and_one_rank_finds_every_table(tmp_path):
    for uninterrupted, resumed in run_on_two_ranks(resumed_halfway, tmp_path):
        assert resumed == uninterrupted

    with process_group(World()):
        alone = Training.start("adam", "adam")
        load_training_state(CheckpointStore(tmp_path).latest(), alone.model, alone.optimizer)
        state = alone.model.fused_optimizer.state_dict()["state"]

    assert [local(table["step"]).tolist() for table in state.values()] == [[4]] * 3
    assert all(local(table["exp_avg_sq"]).sum() > 0 for table in state.values())
