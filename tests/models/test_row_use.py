"""What layers and models say they hold of a row, beside the tensors that torch really holds at its peak."""

from collections.abc import Callable

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import penstock
from penstock.models.layers.factorization import FactorizationMachine
from penstock.models.layers.mlp import MLP, Experts, Gate
from penstock.models.row_use import FLOAT_BYTES
from penstock.models.sections.layers import MLP as MlpSection

ROWS, WIDTH = 4096, 48
"""Rows enough that what does not grow with them, such as the gradients of parameters, is small beside the rest."""


@pytest.fixture(autouse=True)
def quiet_profiler(monkeypatch):
    """The library behind the profiler takes its level at the first trace of a process: see observe.listeners."""
    monkeypatch.setenv("KINETO_LOG_LEVEL", "6")


def section(*hidden_units: int, **options: object) -> MlpSection:
    return MlpSection.model_validate({"hidden_units": hidden_units, **options})


def peak_floats(compute: Callable[[], object]) -> float:
    """The most that tensors take at once while something is computed, in floats of a row."""
    compute()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        compute()
    held = most = 0
    for event in profiled.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most / ROWS / FLOAT_BYTES


def floats_of(forward: Callable[[torch.Tensor], torch.Tensor], width: int, training: bool) -> float:
    x = torch.randn(ROWS, width, generator=torch.Generator().manual_seed(0), requires_grad=training)

    def compute() -> None:
        with torch.set_grad_enabled(training):
            output = forward(x)
            if training:
                x.grad = None
                output.sum().backward()

    return peak_floats(compute)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "options",
    [{}, {"use_bn": True}, {"dropout_ratio": [0.5]}, {"activation": "nn.GELU"}, {"use_ln": True}],
    ids=["plain", "batch norm", "dropout", "gelu", "layer norm"],
)
def test_an_mlp_holds_what_it_says(options: dict[str, object], training: bool) -> None:
    mlp = MLP(WIDTH, section(128, 64, 32, **options), "mlp").train(training)

    said = sum(mlp.row_use(training))

    assert said == pytest.approx(floats_of(mlp, WIDTH, training), rel=0.25)


@pytest.mark.parametrize("training", [True, False])
def test_experts_and_their_gates_hold_what_they_say(training: bool) -> None:
    experts = Experts(WIDTH, 4, section(64, 32), "experts")
    gate = Gate(WIDTH, 4, None, "gate")

    held = floats_of(lambda x: gate(x, experts(x)), WIDTH, training)

    uses = experts.row_use(training), gate.row_use(training, experts.output_dim)
    said = sum(use.kept for use in uses) + max(use.passing for use in uses)
    assert said == pytest.approx(held, rel=0.25)


@pytest.mark.parametrize("training", [True, False])
def test_a_factorisation_machine_holds_what_it_says(training: bool) -> None:
    machine = FactorizationMachine()

    held = floats_of(lambda x: machine(x.unflatten(1, (10, 16))), 160, training)

    assert sum(machine.row_use(10, 16, training)) == pytest.approx(held, rel=0.25)


@pytest.mark.parametrize("name", ["quickstart", "wide_and_deep", "mmoe", "simple_multi_task"])
def test_scoring_holds_less_than_training_and_both_count_every_group(name: str) -> None:
    model = penstock.build_model(penstock.load_run(f"examples/{name}.yaml"))

    groups = FLOAT_BYTES * sum(model.embedding_group.widths.values())

    assert groups < model.row_bytes(False, 100) < model.row_bytes(True, 100)
    assert model.row_bytes(True, 200) - model.row_bytes(True, 100) == 200  # ids exist twice
