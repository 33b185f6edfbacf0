"""Fully connected layers with their activations and normalisation, and experts made of them.

B rows, E experts, D columns of an expert.
"""

from itertools import accumulate

import torch
from torch import nn
from torch.nn import functional

from penstock.config.errors import ConfigError, hint
from penstock.models.row_use import RowUse, layer_use, one_after_another
from penstock.models.sections.layers import MLP as MlpSection

ACTIVATIONS = (
    "ELU",
    "GELU",
    "Hardswish",
    "Identity",
    "LeakyReLU",
    "Mish",
    "PReLU",
    "ReLU",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Tanh",
)
"""The modules of torch.nn that a run file may name."""


@torch.fx.wrap
def has_statistics(x: torch.Tensor) -> bool:
    """Whether there are rows enough for a variance; a function, so that tracing does not look inside."""
    return x.shape[0] > 1


class BatchNorm(nn.BatchNorm1d):
    """As in torch, but one row has no variance: in training it is normalised by the running statistics."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        by_batch = has_statistics(input) if self.training else False
        momentum = 0.1 if self.momentum is None else self.momentum
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_batch, momentum, self.eps
        )


class MLP(nn.Module):
    """Layers of linear, normalisation, activation and dropout, in this order.

    `output_dim` is the width of the last one. Without hidden units the input passes through.
    """

    def __init__(self, input_dim: int, section: MlpSection, path: str) -> None:
        super().__init__()
        ratios, num_layers = section.dropout_ratio, len(section.hidden_units)
        if len(ratios) > 1 and len(ratios) != num_layers:
            raise ConfigError.at(
                f"{path}.dropout_ratio",
                f"{len(ratios)} values for {num_layers} hidden_units; give one, or one for each",
            )
        # `nn.ReLU`, `torch.nn.ReLU` and `ReLU` are the same; empty is none.
        activation = section.activation.removeprefix("torch.").removeprefix("nn.") or "Identity"
        if activation not in ACTIVATIONS:
            message = f"'{section.activation}' is not available; {hint(activation, ACTIVATIONS)}"
            raise ConfigError.at(f"{path}.activation", message)
        self.output_dim = input_dim
        self.layers = nn.Sequential()
        for index, width in enumerate(section.hidden_units):
            layer = nn.Sequential()
            layer.add_module("linear", nn.Linear(self.output_dim, width, bias=section.bias))
            if section.use_bn:
                layer.add_module("batch_norm", BatchNorm(width))
            if section.use_ln:
                layer.add_module("layer_norm", nn.LayerNorm(width))
            layer.add_module("activation", getattr(nn, activation)())
            if dropout := ratios[index % len(ratios)] if ratios else 0.0:
                layer.add_module("dropout", nn.Dropout(dropout))
            self.layers.append(layer)
            self.output_dim = width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layers(x)
        return output

    def row_use(self, training: bool) -> RowUse:
        """Without the input, which its owner counts."""
        uses: list[RowUse] = []
        for layer in self.layers:
            linear = layer.get_submodule("linear")
            assert isinstance(layer, nn.Sequential)
            assert isinstance(linear, nn.Linear)
            input_dim = linear.in_features if training or uses else 0
            uses.append(layer_use(input_dim, layer, linear.out_features, training))
        all_kept = sum(use.kept for use in uses)
        if not training:
            most = max((use.passing for use in uses), default=0)
            return RowUse(self.output_dim if uses else 0, max(0, most - self.output_dim))
        # Going back, what later layers kept is let go before the gradients of earlier ones are there.
        kept = accumulate(use.kept for use in uses)
        most = max((before + use.passing for before, use in zip(kept, uses, strict=True)), default=0)
        return RowUse(all_kept, max(0, most - all_kept))


class Experts(nn.Module):
    """E networks of one shape on one input: (B, input_dim) -> (B, E, D)."""

    def __init__(self, input_dim: int, num_experts: int, section: MlpSection, path: str) -> None:
        super().__init__()
        experts = [MLP(input_dim, section, path) for _ in range(num_experts)]
        self.experts = nn.ModuleList(experts)
        self.output_dim = experts[0].output_dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([expert(x) for expert in self.experts], dim=1)

    def row_use(self, training: bool) -> RowUse:
        """All outputs exist twice while they are joined; so do their gradients while they are told apart."""
        stacked = len(self.experts) * self.output_dim
        uses = [expert.row_use(training) for expert in self.experts if isinstance(expert, MLP)]
        kept, passing = one_after_another(*uses)
        if training:
            return RowUse(kept + stacked, stacked + passing)
        return RowUse(stacked, max(stacked, passing))


class Gate(nn.Module):
    """A mean of experts, whose weights are found from the input: softmax(linear(mlp(x)))."""

    def __init__(self, input_dim: int, num_experts: int, section: MlpSection | None, path: str) -> None:
        super().__init__()
        self.mlp = MLP(input_dim, section, path) if section is not None else None
        self.output = nn.Linear(input_dim if self.mlp is None else self.mlp.output_dim, num_experts)

    def forward(self, x: torch.Tensor, experts_BED: torch.Tensor) -> torch.Tensor:
        """(B, input_dim) and (B, E, D) -> (B, D)."""
        weights_BE = torch.softmax(self.output(x if self.mlp is None else self.mlp(x)), dim=1)
        return (weights_BE.unsqueeze(2) * experts_BED).sum(dim=1)

    def row_use(self, training: bool, expert_dim: int) -> RowUse:
        """Beside the experts that are weighed: the weighed ones, in training the gradients of both, added up."""
        num_experts = self.output.out_features
        weights = RowUse(2 * num_experts, 0) if self.mlp is None else self.mlp.row_use(training)
        weighed = num_experts * expert_dim
        return one_after_another(
            weights, RowUse(num_experts + expert_dim, 3 * weighed if training else weighed)
        )
