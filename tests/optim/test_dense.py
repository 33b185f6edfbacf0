"""Dense optimizers equal torch's own, also by part."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.optim.dense import combined, dense_optimizer, dense_optimizers, set_learning_rate
from penstock.optim.sections import DenseOptimizer


def section(**optimizer):
    return DenseOptimizer.model_validate(optimizer)


def trained(make, rates=(None, None, None)):
    """A weight of 1 after steps with gradients 1, 2, 3."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = make([("weight", weight)])
    for gradient, rate in enumerate(rates, start=1):
        if rate is not None:
            set_learning_rate(optimizer, rate)
        weight.grad = torch.full((1,), float(gradient))
        optimizer.step()
    return weight.item()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"adam_optimizer": {"lr": 0.1, "beta1": 0.8, "amsgrad": True}},
            lambda named: torch.optim.Adam([named[0][1]], lr=0.1, betas=(0.8, 0.999), amsgrad=True),
        ),
        (
            {"adagrad_optimizer": {"lr": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.1}},
            lambda named: torch.optim.Adagrad(
                [named[0][1]], lr=0.1, initial_accumulator_value=0.5, weight_decay=0.1
            ),
        ),
        (
            {"sgd_optimizer": {"lr": 0.1, "nesterov": True}},
            lambda named: torch.optim.SGD([named[0][1]], lr=0.1, momentum=0.9, nesterov=True),
        ),
        (
            {"sgd_optimizer": {"momentum": 0.5, "dampening": 0.2, "weight_decay": 0.1}},
            lambda named: torch.optim.SGD(
                [named[0][1]], lr=0.002, momentum=0.5, dampening=0.2, weight_decay=0.1
            ),
        ),
        (
            {"adamw_optimizer": {"beta2": 0.9, "weight_decay": 0.1}},
            lambda named: torch.optim.AdamW([named[0][1]], lr=0.002, betas=(0.9, 0.9), weight_decay=0.1),
        ),
        (
            {"adadelta_optimizer": {"lr": 0.1, "rho": 0.8}},
            lambda named: torch.optim.Adadelta([named[0][1]], lr=0.1, rho=0.8, eps=1e-6),
        ),
        (
            {"rmsprop_optimizer": {"lr": 0.1, "alpha": 0.8, "weight_decay": 0.1}},
            lambda named: torch.optim.RMSprop([named[0][1]], lr=0.1, alpha=0.8, weight_decay=0.1),
        ),
    ],
)
def test_it_is_the_optimizer_of_torch_with_these_options(options, expected):
    assert trained(lambda named: dense_optimizer(section(**options), named)) == trained(expected)


def test_a_new_learning_rate_is_in_force_at_the_very_next_step():
    plain_sgd = section(sgd_optimizer={"lr": 5.0, "momentum": 0.0})

    assert trained(lambda named: dense_optimizer(plain_sgd, named), rates=(0.1, 0.01, 0.0)) == pytest.approx(
        0.88
    )


def test_every_dense_optimizer_of_the_run_file_has_a_builder_and_a_rate_of_2_in_a_thousand():
    for name in set(DenseOptimizer.one_of["optimizer"]) - {"custom_optimizer"}:
        optimizer = dense_optimizer(section(**{name: {}}), [("weight", torch.nn.Parameter(torch.ones(1)))])

        assert [group["lr"] for group in optimizer.param_groups] == [0.002]


def test_a_model_without_dense_parameters_has_nothing_to_move():
    optimizer = dense_optimizer(section(adam_optimizer={}), [])

    optimizer.zero_grad()
    optimizer.step()

    assert optimizer.state_dict() == {"state": {}}


@pytest.mark.parametrize(("optimizer", "rate"), [("adam_optimizer", 1e38), ("sgd_optimizer", 1e39)])
def test_a_scheduled_rate_that_overflows_is_refused_in_one_line(optimizer, rate):
    weight = torch.nn.Parameter(torch.ones(1))
    dense = dense_optimizer(DenseOptimizer.model_validate({optimizer: {}}), [("weight", weight)])

    with pytest.raises(ConfigError, match=r"a learning rate cannot be used: lr is 1e\+3., which is infinite"):
        set_learning_rate(dense, rate)


NAMES = ["deep.0.weight", "deep.0.bias", "wide.weight", "final.weight"]


def parameters():
    return {name: torch.nn.Parameter(torch.ones(1)) for name in NAMES}


def with_parts(*parts, **more):
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
    scheduled = dense_optimizers(
        with_parts((r"deep\..*", ADAM), (r".*\.weight", HALVING)), parameters().items()
    )

    assert owners(scheduled) == {
        "dense_part_0": ["deep.0.weight", "deep.0.bias"],
        "dense_part_1": ["wide.weight", "final.weight"],
    }


def test_what_no_pattern_matches_stays_with_the_first_optimizer():
    scheduled = dense_optimizers(with_parts((r"wide\.weight", ADAM)), parameters().items())

    assert owners(scheduled)["dense"] == ["deep.0.weight", "deep.0.bias", "final.weight"]


def trained_by_part(scheduled, named, steps):
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
    scheduled = dense_optimizers(with_parts((r"wide\.weight", HALVING)), named.items())

    assert trained_by_part(scheduled, named, range(2)) == pytest.approx([0.8, 0.8, 1 - 0.8 - 0.4, 0.8])


def test_the_whole_saves_and_restores_its_state_by_parameter_name():
    parts = with_parts((r"deep.*", ADAM), (r"wide.*", {"adadelta_optimizer": {}}))
    named = parameters()
    first = dense_optimizers(parts, named.items())
    trained_by_part(first, named, range(3))
    state = combined(first).state_dict()

    assert sorted(state["state"]) == ["deep.0.bias", "deep.0.weight", "wide.weight"]
    copies = {name: torch.nn.Parameter(parameter.detach().clone()) for name, parameter in named.items()}
    second = dense_optimizers(parts, copies.items())
    combined(second).init_state()
    combined(second).load_state_dict(state)

    assert trained_by_part(second, copies, range(3, 6)) == trained_by_part(first, named, range(3, 6))


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
        dense_optimizers(with_parts((pattern, ADAM)), parameters().items())

    assert str(caught.value) == f"train_config.dense_optimizer.part_optimizers{REFUSED[pattern]}"


def test_a_pattern_behind_one_that_takes_all_it_matches_is_an_error():
    with pytest.raises(
        ConfigError, match=r"\[1\].*matches only what earlier parts have taken, such as wide\.w"
    ):
        dense_optimizers(with_parts((".*", ADAM), ("wide.*", ADAM)), parameters().items())
