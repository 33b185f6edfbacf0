"""A checkpoint of two ranks is loaded by two and by one; one of one rank by two."""

from pathlib import Path

import pytest
import torch

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import CheckpointError
from penstock.distributed.groups import process_group
from penstock.distributed.state import load_training_state, training_state
from penstock.runtime.collectives import Collectives
from penstock.runtime.world import World
from tests.distributed.small_model import Training
from tests.distributed.two_ranks import run_on_two_ranks

pytestmark = pytest.mark.slow


def saved_halfway(world: World, collectives: Collectives, directory: Path) -> list[float]:
    """Train four steps, save, and train two more; the losses of those two."""
    training = Training.start("rowwise_adagrad", "adam", world)
    training.run(range(4))
    store = CheckpointStore(directory, world=world, collectives=collectives)
    store.save(4, training_state(training.model, training.optimizer), {"progress": {"step": 4}})
    return training.run(range(4, 6))


def loaded(world: World, collectives: Collectives, directory: Path) -> list[float]:
    """Load what was saved and train two more steps; their losses."""
    training = Training.start("rowwise_adagrad", "adam", world)
    checkpoint = CheckpointStore(directory, world=world, collectives=collectives).latest()
    assert checkpoint.documents == {"progress": {"step": 4}}
    load_training_state(checkpoint, training.model, training.optimizer)
    return training.run(range(4, 6))


def saved_and_loaded(
    world: World, collectives: Collectives, directory: Path
) -> tuple[list[float], list[float]]:
    return saved_halfway(world, collectives, directory), loaded(world, collectives, directory)


def copied(world: World, collectives: Collectives, source: Path, target: Path) -> None:
    """Load on these ranks what other ranks saved, and save it again from here."""
    training = Training.start("rowwise_adagrad", "adam", world)
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


def test_two_ranks_resume_bit_equal(tmp_path):
    for uninterrupted, resumed in run_on_two_ranks(saved_and_loaded, tmp_path):
        assert resumed == uninterrupted


def dense_values(world: World, _: Collectives) -> list[float]:
    training = Training.start("adagrad", "adam", world)
    training.run(range(3))
    return training.model.module.output.weight.flatten().tolist()


def test_ranks_average_the_gradients_of_what_they_all_hold():
    first, second = run_on_two_ranks(dense_values)

    assert first == second


def test_two_to_one_to_two_ranks_changes_nothing(tmp_path):
    two, one, again = tmp_path / "two", tmp_path / "one", tmp_path / "again"

    run_on_two_ranks(saved_halfway, two)
    with process_group(World()) as collectives:
        copied(World(), collectives, two, one)
    run_on_two_ranks(copied, one, again)

    assert sorted(path.name for path in (two / "step-4").glob("*.safetensors")) == [
        "rank-00000.safetensors",
        "rank-00001.safetensors",
    ]
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
