"""The building blocks by their definitions."""

import itertools

import pytest
import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.models.layers.factorization import FactorizationMachine, Wide
from penstock.models.layers.mlp import MLP, BatchNorm, Experts, Gate
from penstock.models.sections.layers import MLP as MlpSection
from penstock.models.table_plan import Slot


def mlp(input_dim=3, **options):
    return MLP(input_dim, MlpSection.model_validate({"hidden_units": [4, 2], **options}), "mlp")


def kinds(module):
    return [[type(part).__name__ for part in layer] for layer in module.layers]


def test_fm_is_the_sum_over_all_pairs():
    vectors = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(0))
    pairs = sum(vectors[:, i] * vectors[:, j] for i, j in itertools.combinations(range(4), 2))

    torch.testing.assert_close(FactorizationMachine()(vectors), pairs)


def test_an_mlp_is_linear_normalisation_activation_dropout():
    module = mlp(use_bn=True, use_ln=True, dropout_ratio=[0.5, 0.0], activation="nn.GELU")

    assert kinds(module) == [
        ["Linear", "BatchNorm", "LayerNorm", "GELU", "Dropout"],
        ["Linear", "BatchNorm", "LayerNorm", "GELU"],
    ]
    assert module(torch.zeros(7, 3)).shape == (7, module.output_dim) == (7, 2)


def test_options_of_an_mlp():
    assert [layer.dropout.p for layer in mlp(dropout_ratio=[0.25]).layers] == [0.25, 0.25]
    assert [layer.linear.bias for layer in mlp(bias=False).layers] == [None, None]
    assert kinds(mlp(activation="")) == [["Linear", "Identity"]] * 2
    assert mlp(hidden_units=[]).output_dim == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"activation": "nn.ReLu"}, "mlp.activation: 'nn.ReLu' is not available; did you mean 'ReLU'?"),
        ({"activation": "os.abort"}, "mlp.activation: 'os.abort' is not available; known: ELU, GELU"),
        (
            {"dropout_ratio": [0.1] * 3},
            "mlp.dropout_ratio: 3 values for 2 hidden_units; give one, or one for each",
        ),
    ],
)
def test_bad_options_are_named(options, problem):
    with pytest.raises(ConfigError) as caught:
        mlp(**options)

    assert str(caught.value).startswith(problem)


def test_batch_norm_equals_torch_and_takes_one_row_by_its_running_statistics():
    ours, theirs = BatchNorm(3), nn.BatchNorm1d(3)
    rows = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))

    torch.testing.assert_close(ours(rows), theirs(rows))
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours(rows[:1]), theirs.eval()(rows[:1]))


def test_wide_adds_vectors_up_and_weighs_numbers():
    wide = Wide([Slot("id", "id_wide", 2), Slot("x", None, 1), Slot("other", "other_wide", 2)])
    nn.init.constant_(wide.weights.weight, 10.0)

    assert wide(torch.tensor([[1.0, 2.0, 0.5, 3.0, 4.0]])).tolist() == [[1 + 2 + 3 + 4 + 5]]
    assert Wide([Slot("id", "id_wide", 2)])(torch.tensor([[1.0, 2.0]])).tolist() == [[3.0]]

    each_class = Wide([Slot("id", "id_wide", 4), Slot("x", None, 1)], num_class=3)
    nn.init.constant_(each_class.weights.weight, 10.0)
    assert each_class(torch.tensor([[1.0, 2.0, 3.0, 4.0, 0.5]])).tolist() == [[1 + 4 + 5, 2 + 5, 3 + 5]]


def test_experts_are_weighed_by_each_gate():
    experts = Experts(3, 2, MlpSection(hidden_units=[4]), "expert_mlp")
    gate = Gate(3, 2, None, "gate_mlp")
    x = torch.randn(5, 3)
    experts_BED = experts(x)
    weights = torch.softmax(gate.output(x), dim=1)

    assert experts_BED.shape == (5, 2, 4)
    torch.testing.assert_close(experts_BED[:, 1], experts.experts[1](x))
    expected = weights[:, :1] * experts_BED[:, 0] + weights[:, 1:] * experts_BED[:, 1]
    torch.testing.assert_close(gate(x, experts_BED), expected)
