"""Other optimizers for some of the parameters, chosen by name."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.optim.dense import combined, dense_optimizers
from penstock.optim.rates import set_learning_rate
from penstock.optim.sections.dense import DenseOptimizer

NAMES = ["deep.0.weight", "deep.0.bias", "wide.weight", "final.weight"]


def parameters():
    return {name: torch.nn.Parameter(torch.ones(1)) for name in NAMES}


def section(*parts, **more):
    return DenseOptimizer.model_validate(
        {
            "sgd_optimizer": {"lr": 0.1, "momentum": 0.0},
            "part_optimizers": [{"regex_pattern": pattern, **options} for pattern, options in parts],
            **more,
        }
    )


ADAM, HALVING = (
    {"adam_optimizer": {"lr": 0.01}},
    {
        "sgd_optimizer": {"lr": 0.8, "momentum": 0.0},
        "exponential_decay_learning_rate": {"decay_size": 1, "decay_factor": 0.5},
    },
)


def owners(scheduled):
    return {name: list(optimizer.params) for name, (optimizer, _) in scheduled.items()}


def test_the_first_pattern_that_matches_the_whole_name_takes_a_parameter():
    scheduled = dense_optimizers(section((r"deep\..*", ADAM), (r".*\.weight", HALVING)), parameters().items())

    assert owners(scheduled) == {
        "dense_part_0": ["deep.0.weight", "deep.0.bias"],
        "dense_part_1": ["wide.weight", "final.weight"],
    }


def test_what_no_pattern_matches_stays_with_the_first_optimizer():
    scheduled = dense_optimizers(section((r"wide\.weight", ADAM)), parameters().items())

    assert owners(scheduled)["dense"] == ["deep.0.weight", "deep.0.bias", "final.weight"]


def test_each_part_has_its_own_schedule():
    scheduled = dense_optimizers(section((r"wide\.weight", HALVING)), parameters().items())

    assert {name: schedule.value(2, 0) for name, (_, schedule) in scheduled.items()} == {
        "dense": 0.1,
        "dense_part_0": 0.2,
    }


def trained(scheduled, named, steps):
    """All parameters after steps with a gradient of 1, at the rates of their schedules."""
    whole = combined(scheduled)
    for step in steps:
        for optimizer, schedule in scheduled.values():
            set_learning_rate(optimizer, schedule.value(step, 0))
        for parameter in named.values():
            parameter.grad = torch.ones(1)
        whole.step()
    return [parameter.item() for parameter in named.values()]


def test_every_part_moves_by_its_own_rule():
    named = parameters()
    scheduled = dense_optimizers(section((r"wide\.weight", HALVING)), named.items())

    assert trained(scheduled, named, range(2)) == pytest.approx([0.8, 0.8, 1 - 0.8 - 0.4, 0.8])


def test_the_whole_saves_and_restores_its_state_by_parameter_name():
    parts = section((r"deep.*", ADAM), (r"wide.*", {"adadelta_optimizer": {}}))
    named = parameters()
    first = dense_optimizers(parts, named.items())
    trained(first, named, range(3))
    state = combined(first).state_dict()

    assert sorted(state["state"]) == ["deep.0.bias", "deep.0.weight", "wide.weight"]
    copies = {name: torch.nn.Parameter(parameter.detach().clone()) for name, parameter in named.items()}
    second = dense_optimizers(parts, copies.items())
    combined(second).init_state()
    combined(second).load_state_dict(state)

    assert trained(second, copies, range(3, 6)) == trained(first, named, range(3, 6))


REFUSED = {
    "fial.weight": "[0].regex_pattern: 'fial.weight' matches no parameter; near names: "
    "final.weight, wide.weight, deep.0.weight",
    "deep": "[0].regex_pattern: 'deep' matches only a piece of deep.0.weight; it must match the whole name: "
    "use '.*deep.*'",
    ".*deep": "[0].regex_pattern: '.*deep' matches only a piece of deep.0.weight; it must match the whole name: "
    "use '.*deep.*'",
    "^deep": "[0].regex_pattern: '^deep' matches only a piece of deep.0.weight; it must match the whole name: "
    "use '.*deep.*'",
    ".*user_emb.*": "[0].regex_pattern: '.*user_emb.*' matches no parameter; near names: "
    "deep.0.bias, deep.0.weight, wide.weight; embedding tables follow sparse_optimizer",
    "deep|wide": "[0].regex_pattern: 'deep|wide' matches only a piece of deep.0.weight; it must match the whole "
    "name: use '.*(deep|wide).*'",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_without_match_is_an_error_with_near_names(pattern):
    with pytest.raises(ConfigError) as caught:
        dense_optimizers(section((pattern, ADAM)), parameters().items())

    assert str(caught.value) == f"train_config.dense_optimizer.part_optimizers{REFUSED[pattern]}"


def test_a_pattern_behind_one_that_takes_all_it_matches_is_an_error():
    with pytest.raises(
        ConfigError, match=r"\[1\].*matches only what earlier parts have taken, such as wide\.w"
    ):
        dense_optimizers(section((".*", ADAM), ("wide.*", ADAM)), parameters().items())
