"""A checkpoint of two ranks is loaded by two and by one; one of one rank by two."""

from pathlib import Path

import pytest
import torch

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import CheckpointError
from penstock.distributed.groups import process_group
from penstock.distributed.state import load_training_state, training_state
from penstock.runtime.world import Collectives, World
from tests.distributed.small_model import Training, local
from tests.distributed.two_ranks import run_on_two_ranks

pytestmark = pytest.mark.slow
SPARSE = ("rowwise_adagrad", "adam")


def resumed_halfway(world: World, collectives: Collectives, directory: Path) -> list[object]:
    """For each optimizer of tables: the losses of two steps after a save, by who saved and by who loaded."""
    found = []
    for sparse in SPARSE:
        before, after = (Training.start(sparse, "adam", world) for _ in range(2))
        before.run(range(4))
        store = CheckpointStore(directory / sparse, world=world, collectives=collectives)
        store.save(4, training_state(before.model, before.optimizer), {"progress": {"step": 4}})
        checkpoint = store.latest()
        assert checkpoint.documents == {"progress": {"step": 4}}
        load_training_state(checkpoint, after.model, after.optimizer)
        shared = before.model.module.output.weight.flatten().tolist()
        found.append((before.run(range(4, 6)), after.run(range(4, 6)), shared))
    return found


def copied(world: World, collectives: Collectives, source: Path, target: Path) -> None:
    """Load on these ranks what other ranks saved, and save it again from here."""
    training = Training.start(source.name, "adam", world)
    checkpoint = CheckpointStore(source, world=world, collectives=collectives).latest()
    load_training_state(checkpoint, training.model, training.optimizer)
    store = CheckpointStore(target, world=world, collectives=collectives)
    store.save(4, training_state(training.model, training.optimizer), checkpoint.documents)


def contents(directory: Path) -> dict[str, torch.Tensor]:
    """All tensors of a checkpoint, read whole by one process."""
    checkpoint = CheckpointStore(directory).latest()
    tensors = {
        name: torch.empty(record.shape, dtype=getattr(torch, record.dtype))
        for name, record in checkpoint.tensors.items()
    }
    checkpoint.load_tensors(tensors)
    return tensors


def test_two_ranks_resume_bit_equal_and_two_to_one_to_two_ranks_changes_nothing(tmp_path):
    first, second = run_on_two_ranks(resumed_halfway, tmp_path / "two")
    for of_first, of_second in zip(first, second, strict=True):
        for uninterrupted, resumed, _ in (of_first, of_second):
            assert resumed == uninterrupted
        assert of_first[2] == of_second[2], "ranks average the gradients of what they all hold"

    two, one, again = (tmp_path / name / "rowwise_adagrad" for name in ("two", "one", "again"))
    with process_group(World()) as collectives:
        copied(World(), collectives, two, one)
        alone = Training.start("adam", "adam")
        load_training_state(CheckpointStore(tmp_path / "two" / "adam").latest(), alone.model, alone.optimizer)
        state = alone.model.fused_optimizer.state_dict()["state"]
    run_on_two_ranks(copied, one, again)

    # The moments and steps of Adam on tables move with their tables.
    assert [local(table["step"]).tolist() for table in state.values()] == [[4]] * 3
    assert all(local(table["exp_avg_sq"]).sum() > 0 for table in state.values())
    assert len(list((two / "step-4").glob("rank-0000[01].safetensors"))) == 2
    original = contents(two)
    for directory in (one, again):
        tensors = contents(directory)
        assert tensors.keys() == original.keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, original[name]), name


def refused(world: World, collectives: Collectives, directory: Path) -> str:
    """What each rank says about a checkpoint of which only one rank sees the damage."""
    store = CheckpointStore(directory, world=world, collectives=collectives)
    store.save(1, {"table": torch.ones(3)}, {})
    if world.rank == 0:
        (directory / "step-1" / "rank-00000.safetensors").write_bytes(b"x" * 152)
    collectives.barrier()
    try:
        store.open(1)
    except CheckpointError as error:
        return str(error)
    return "opened"


def test_all_ranks_refuse_together(tmp_path):
    first, second = run_on_two_ranks(refused, tmp_path)

    assert first == second
    assert "rank-00000.safetensors' " in first
