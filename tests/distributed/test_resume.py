"""A run that was saved, ended and loaded goes on exactly like one that was never interrupted."""

import pytest
import torch

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import CheckpointError
from penstock.distributed.groups import process_group
from penstock.distributed.state import load_model_state, load_training_state, training_state
from penstock.runtime.world import World
from tests.distributed.small_model import DENSE, SPARSE, SmallModel, Training, batch


@pytest.fixture(autouse=True)
def group():
    with process_group(World()):
        yield


# Tables and layers have optimizers that know nothing of each other: each of them once, not all pairs.
PAIRS = [*((sparse, "adam") for sparse in SPARSE), *(("adam", dense) for dense in DENSE if dense != "adam")]


@pytest.mark.parametrize(("sparse", "dense"), PAIRS)
def test_a_resumed_run_is_bit_equal_to_an_uninterrupted_one(tmp_path, sparse, dense):
    whole = Training.start(sparse, dense)
    losses = whole.run(range(8))

    store = CheckpointStore(tmp_path)
    before = Training.start(sparse, dense)
    first_losses = before.run(range(5))
    store.save(5, training_state(before.model, before.optimizer), {})
    after = Training.start(sparse, dense)
    load_training_state(store.latest(), after.model, after.optimizer)

    assert_equal(after.state(), before.state())
    assert first_losses + after.run(range(5, 8)) == losses
    assert_equal(after.state(), whole.state())


def assert_equal(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    assert left.keys() == right.keys()
    for name, tensor in left.items():
        assert torch.equal(tensor, right[name]), name


def test_names_say_what_a_tensor_is():
    training = Training.start("rowwise_adagrad", "adam")
    training.run(range(1))

    shapes = {name: tuple(tensor.shape) for name, tensor in training.state().items() if "feature_0" in name}
    assert shapes == {
        "model.tables.embedding_bags.table_feature_0.weight": (50, 4),
        "sparse_optimizer.tables.embedding_bags.table_feature_0.weight.momentum1": (50,),
    }
    assert "dense_optimizer.output.weight.exp_avg" in training.state()
    assert not any("never_used" in name for name in training.state() if name.startswith("dense_optimizer"))


def saved_after(num_steps, directory):
    training = Training.start("adagrad", "adam")
    training.run(range(num_steps))
    store = CheckpointStore(directory)
    store.save(num_steps, training_state(training.model, training.optimizer), {})
    return training, store.latest()


def test_an_unsharded_model_takes_the_model_out_of_a_training_checkpoint(tmp_path):
    training, checkpoint = saved_after(3, tmp_path)
    plain, (ids, _) = SmallModel(), batch(9)

    assert not load_model_state(checkpoint, plain)
    assert torch.allclose(plain.eval()(ids), training.model.eval()(ids))


def test_another_optimizer_than_before_is_refused_by_name(tmp_path):
    _, checkpoint = saved_after(1, tmp_path)
    other = Training.start("sgd", "adam")

    with pytest.raises(
        CheckpointError, match=r"only in the checkpoint: sparse_optimizer\.tables\.embedding_bags"
    ):
        load_training_state(checkpoint, other.model, other.optimizer)


def test_a_checkpoint_before_the_first_step_loads(tmp_path):
    start, checkpoint = saved_after(0, tmp_path)
    again = Training.start("adagrad", "adam")

    load_training_state(checkpoint, again.model, again.optimizer)

    assert again.run(range(2)) == start.run(range(2))
