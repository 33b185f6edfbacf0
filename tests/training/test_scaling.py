"""FP16: tables and dense parameters move by true gradients, or, where one overflows, not at all."""

import json
from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional
from torchrec.optim.keyed import KeyedOptimizerWrapper
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from penstock.distributed.groups import process_group
from penstock.distributed.sharding import dense_parameters, shard
from penstock.runtime.world import World
from penstock.training.learning_rates import LearningRates
from penstock.training.precision import LossScaling, gradient_clipper
from penstock.training.progress import TrainingProgress
from penstock.training.sections import GradClipping, GradScaler
from penstock.training.step import TrainStep
from tests.distributed import small_model
from tests.distributed.small_model import DENSE, SPARSE, SmallModel, Training

CPU = torch.device("cpu")


class Learner(SmallModel):
    """The small model with its loss, as a step wants it."""

    def forward(self, batch: "Clicks"):
        logits = super().forward(batch.ids)
        return functional.binary_cross_entropy_with_logits(logits.float(), batch.labels), ({}, {}, batch)


class Clicks:
    """Ids and labels of one step."""

    def __init__(self, step: int) -> None:
        self.ids: KeyedJaggedTensor
        self.ids, self.labels = small_model.batch(step)

    def to(self, device: torch.device) -> "Clicks":
        return self


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    with process_group(World()):
        yield


def start(sparse: str = "adagrad", *, precision=torch.float16, clip=None, **settings):
    """A training, what takes its steps, and, in FP16, the scaling of its losses."""
    torch.manual_seed(7)
    optimizer_class, options = SPARSE[sparse]
    model = shard(Learner("feature_2"), (optimizer_class, dict(options)), World())
    parameters = dense_parameters(model)
    training = Training(model, KeyedOptimizerWrapper(parameters, DENSE["adam"]), World())
    scaling = None
    if precision is not None:
        scaling = LossScaling(GradScaler(**settings), model, parameters.values(), CPU)
    step = TrainStep(
        model,
        training.optimizer,
        LearningRates({}),
        CPU,
        precision=precision,
        scaling=scaling,
        clip=gradient_clipper(clip, parameters.values()),
    )
    return training, step, scaling


def take(step: TrainStep, steps: range) -> list[bool]:
    return [step(Clicks(number), TrainingProgress(step=number)).taken for number in steps]


def furthest(one, other) -> dict[str, float]:
    """The largest difference of each tensor."""
    return {name: float((one[name] - other[name]).abs().max()) for name in one}


@pytest.mark.parametrize("sparse", SPARSE)
def test_the_scale_is_in_no_table_and_no_parameter(sparse):
    states = []
    for scale in (1.0, 65536.0):
        training, step, _ = start(sparse, init_scale=scale)
        before = training.state()
        assert take(step, range(3)) == [True] * 3
        states.append(training.state())

    moved = furthest(before, states[0])
    assert all(moved[f"model.tables.embedding_bags.table_feature_{index}.weight"] > 0.01 for index in (0, 1))
    assert moved["model.tables.embedding_bags.table_feature_2.weight"] == 0  # frozen
    assert max(furthest(*states).values()) < 1e-3


@pytest.mark.parametrize("sparse", SPARSE)
def test_training_is_nearly_that_of_float32(sparse):
    rounded, in_fp16, _ = start(sparse)
    exact, in_float32, _ = start(sparse, precision=None)

    take(in_fp16, range(3))
    take(in_float32, range(3))

    differences = furthest(rounded.state(), exact.state())
    tables = {name: value for name, value in differences.items() if name.endswith(".weight")}
    assert 0 < max(tables.values()) < 0.02


@pytest.mark.parametrize("sparse", SPARSE)
def test_an_overflow_moves_nothing_and_halves_the_scale(sparse):
    training, step, scaling = start(sparse, init_scale=2.0**40)
    before = training.state()

    outcome = step(Clicks(0), TrainingProgress())

    assert outcome.overflowed
    assert 0 < outcome.loss < 1
    assert not outcome.taken
    assert scaling.scale == 2.0**39
    after = training.state()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_scale_falls_at_overflows_and_grows_without():
    _, step, scaling = start(init_scale=2.0**40, growth_factor=4.0, growth_interval=3, backoff_factor=0.125)
    expected, num_good = 2.0**40, 0
    seen = set()

    for taken in (take(step, range(number, number + 1))[0] for number in range(20)):
        num_good = num_good + 1 if taken else 0
        if num_good == 3:
            expected, num_good = expected * 4, 0
        elif not taken:
            expected /= 8
        assert scaling.scale == expected
        seen.add(taken)

    assert seen == {True, False}


def test_gradients_are_clipped_by_their_true_size():
    clip = GradClipping(clipping_type="norm", max_gradient=0.01)
    norms = []
    for scale in (1.0, 65536.0):
        training, step, _ = start(clip=clip, init_scale=scale)
        take(step, range(1))
        gradients = [p.grad.flatten() for p in training.model.parameters() if p.grad is not None]
        norms.append(float(torch.cat(gradients).norm()))

    assert norms == pytest.approx([0.01, 0.01], rel=1e-3)


def test_the_scale_is_saved_with_the_steps_it_has_held():
    _, step, before = start(init_scale=1024.0, growth_interval=3)
    take(step, range(2))
    _, another_step, after = start(growth_interval=3)

    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert after.scale == 1024.0
    take(another_step, range(1))

    assert after.scale == 2048.0  # the third step in a row without an overflow


def test_the_run_file_says_how_the_scale_moves_also_after_a_restart():
    _, _, before = start(init_scale=2.0**40)
    _, step, after = start(backoff_factor=0.25)

    after.load_state_dict(before.state_dict())
    take(step, range(1))

    assert after.scale == 2.0**38


def test_looking_without_gradients_leaves_lookups_as_they_are():
    training, step, _ = start()
    with torch.no_grad():
        training.model(Clicks(0))

    assert take(step, range(1)) == [True]
