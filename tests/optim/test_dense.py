"""Dense optimizers equal torch's own, also by part; running means of the parameters."""

import pytest
import torch

from penstock.config.errors import ConfigError
from penstock.optim.dense import DenseAverages, dense_optimizers, set_learning_rate
from penstock.optim.sections import DenseOptimizer


def trained(make):
    """A weight of 1 after steps with gradients 1, 2, 3."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = make([("weight", weight)])
    for gradient in (1.0, 2.0, 3.0):
        weight.grad = torch.full((1,), gradient)
        optimizer.step()
    return weight.item()


def chosen(named=(), **optimizer):
    return dense_optimizers(DenseOptimizer.model_validate(optimizer), named)[0]


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("adam", {"lr": 0.1, "beta1": 0.8, "amsgrad": True}, {"betas": (0.8, 0.999)}),
        ("adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.1}, {}),
        ("sgd", {"lr": 0.1, "nesterov": True}, {"momentum": 0.9}),
        ("adamw", {"beta2": 0.9, "weight_decay": 0.1}, {"betas": (0.9, 0.9)}),
        ("adadelta", {"lr": 0.1, "rho": 0.8}, {}),
        ("rmsprop", {"lr": 0.1, "alpha": 0.8, "weight_decay": 0.1}, {}),
    ],
)
def test_it_is_the_optimizer_of_torch_with_these_options(name, options, expected):
    torch_class = {each.lower(): getattr(torch.optim, each) for each in dir(torch.optim)}[name]
    settings = {key: value for key, value in options.items() if not key.startswith("beta")}
    settings = {"lr": 0.002, **settings, **expected}

    assert trained(lambda named: chosen(named, **{f"{name}_optimizer": options})) == trained(
        lambda named: torch_class([named[0][1]], **settings)
    )


def test_a_model_without_dense_parameters_has_nothing_to_move():
    optimizer = chosen(adam_optimizer={})
    optimizer.zero_grad()
    optimizer.step()

    assert optimizer.state_dict() == {"state": {}}


@pytest.mark.parametrize(("optimizer", "rate"), [("adam_optimizer", 1e38), ("sgd_optimizer", 1e39)])
def test_a_scheduled_rate_that_overflows_is_refused_in_one_line(optimizer, rate):
    dense = chosen([("weight", torch.nn.Parameter(torch.ones(1)))], **{optimizer: {}})

    with pytest.raises(ConfigError, match=r"a learning rate cannot be used: lr is 1e\+3., which is infinite"):
        set_learning_rate(dense, rate)


NAMES = ["deep.0.weight", "deep.0.bias", "wide.weight", "final.weight"]


def parameters():
    return {name: torch.nn.Parameter(torch.ones(1)) for name in NAMES}


def with_parts(*parts):
    return DenseOptimizer.model_validate(
        {
            "sgd_optimizer": {"lr": 0.1, "momentum": 0.0},
            "part_optimizers": [{"regex_pattern": pattern, **options} for pattern, options in parts],
        }
    )


ADAM = {"adam_optimizer": {"lr": 0.01}}
HALVING = {
    "sgd_optimizer": {"lr": 0.8, "momentum": 0.0},
    "exponential_decay_learning_rate": {"decay_size": 1, "decay_factor": 0.5},
}


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([r"deep\..*", r".*\.weight"], {"dense_part_0": NAMES[:2], "dense_part_1": NAMES[2:]}),
        ([r"wide\.weight"], {"dense": [*NAMES[:2], NAMES[3]], "dense_part_0": [NAMES[2]]}),
    ],
)
def test_the_first_pattern_that_matches_the_whole_name_takes_a_parameter(patterns, expected):
    _, scheduled = dense_optimizers(
        with_parts(*((pattern, ADAM) for pattern in patterns)), parameters().items()
    )

    assert {name: list(optimizer.params) for name, (optimizer, _) in scheduled.items()} == expected


def test_every_part_moves_by_its_own_rule():
    named = parameters()
    optimizer, scheduled = dense_optimizers(with_parts((r"wide\.weight", HALVING)), named.items())

    for step in range(2):
        for part, schedule in scheduled.values():
            set_learning_rate(part, schedule.value(step, 0))
        for parameter in named.values():
            parameter.grad = torch.ones(1)
        optimizer.step()

    moved = [parameter.item() for parameter in named.values()]
    assert moved == pytest.approx([0.8, 0.8, 1 - 0.8 - 0.4, 0.8])


PIECE = "matches only a piece of deep.0.weight; it must match the whole name: use"
REFUSED = {
    "fial.weight": "matches no parameter; near names: final.weight, wide.weight, deep.0.weight",
    "deep": f"{PIECE} '.*deep.*'",
    "deep|wide": f"{PIECE} '.*(deep|wide).*'",
    ".*user_emb.*": "matches no parameter; near names: deep.0.bias, deep.0.weight, wide.weight; "
    "embedding tables follow sparse_optimizer",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_without_match_is_an_error_with_near_names(pattern):
    with pytest.raises(ConfigError) as caught:
        dense_optimizers(with_parts((pattern, ADAM)), parameters().items())

    path = "train_config.dense_optimizer.part_optimizers[0].regex_pattern"
    assert str(caught.value) == f"{path}: '{pattern}' {REFUSED[pattern]}"


def test_a_pattern_behind_one_that_takes_all_it_matches_is_an_error():
    with pytest.raises(
        ConfigError, match=r"\[1\].*matches only what earlier parts have taken, such as wide\.w"
    ):
        dense_optimizers(with_parts((".*", ADAM), ("wide.*", ADAM)), parameters().items())


def averaged(decay=0.5):
    weight = torch.nn.Parameter(torch.zeros(2))
    return weight, DenseAverages({"deep.weight": weight}, decay)


def move(weight, averages, *values):
    for value in values:
        weight.data.fill_(value)
        averages.update()


def mean_of(weight, averages):
    with averages.applied():
        return weight.tolist()


def test_it_starts_as_the_parameters_after_the_first_step_and_follows_them():
    weight, averages = averaged(decay=0.75)
    weight.data.fill_(5.0)
    assert mean_of(weight, averages) == [5.0, 5.0]  # before the first step
    move(weight, averages, 8.0)
    assert mean_of(weight, averages) == [8.0, 8.0]

    move(weight, averages, 0.0, 2.0)
    assert mean_of(weight, averages) == [0.75 * 6.0 + 0.25 * 2.0] * 2
    with pytest.raises(IndexError), averages.applied():
        weight.tolist()[9]
    assert weight.tolist() == [2.0, 2.0]
