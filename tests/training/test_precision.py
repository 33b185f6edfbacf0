"""What a model computes in, scaled losses, clipped gradients."""

from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional
from torchrec.optim.keyed import KeyedOptimizerWrapper
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from penstock.config.errors import ConfigError
from penstock.distributed.groups import process_group
from penstock.distributed.sharding import dense_parameters, shard
from penstock.runtime.world import World
from penstock.training.events import TrainingProgress
from penstock.training.precision import LossScaling, computing_in, gradient_clipper
from penstock.training.sections import GradClipping, GradScaler
from penstock.training.step import LearningRates, TrainStep
from tests.distributed import small_model
from tests.distributed.small_model import DENSE, SPARSE, SmallModel, Training

CPU = torch.device("cpu")


def test_a_processor_without_the_kernel_is_reported_with_what_to_set():
    problem = "in BF16 on this processor; .* ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"
    with pytest.raises(ConfigError, match=problem), computing_in(torch.bfloat16, CPU):
        raise RuntimeError("could not create a primitive")


def clipped(**options):
    """The gradients (3, 4) of two parameters, after clipping."""
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    for parameter, gradient in zip(parameters, (3.0, 4.0), strict=True):
        parameter.grad = torch.tensor([gradient])
    gradient_clipper(GradClipping(**options), parameters)()
    return [parameter.grad.item() for parameter in parameters]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"clipping_type": "norm", "max_gradient": 1.0}, [0.6, 0.8]),
        ({"clipping_type": "norm", "max_gradient": 3.5, "norm_type": 1.0}, [1.5, 2.0]),
        ({"clipping_type": "norm", "max_gradient": 10.0}, [3.0, 4.0]),
        ({"clipping_type": "value", "max_gradient": 3.5}, [3.0, 3.5]),
    ],
)
def test_gradients_are_clipped_as_asked(options, expected):
    assert clipped(**options) == pytest.approx(expected, abs=1e-5)
    assert gradient_clipper(GradClipping(clipping_type="none"), []) is None


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


def start(sparse: str = "adagrad", **settings):
    """A training in FP16, what takes its steps, and the scaling of its losses."""
    torch.manual_seed(7)
    optimizer_class, options = SPARSE[sparse]
    model = shard(Learner("feature_2"), (optimizer_class, dict(options)), World())
    parameters = dense_parameters(model)
    training = Training(model, KeyedOptimizerWrapper(parameters, DENSE["adam"]), World())
    scaling = LossScaling(GradScaler(**settings), model, parameters.values(), CPU)
    rates = LearningRates({})
    step = TrainStep(model, training.optimizer, rates, CPU, precision=torch.float16, scaling=scaling)
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


def test_looking_without_gradients_leaves_lookups_as_they_are():
    training, step, _ = start()
    with torch.no_grad():
        training.model(Clicks(0))

    assert take(step, range(1)) == [True]
