"""Experts side by side, and gates that weigh them. B rows, E experts, D columns of an expert."""

import torch
from torch import nn

from penstock.models.layers.mlp import MLP
from penstock.models.sections.layers import MLP as MlpSection


class Experts(nn.Module):
    """E networks of one shape on one input: (B, input_dim) -> (B, E, D)."""

    def __init__(self, input_dim: int, num_experts: int, section: MlpSection, path: str) -> None:
        super().__init__()
        experts = [MLP(input_dim, section, path) for _ in range(num_experts)]
        self.experts = nn.ModuleList(experts)
        self.output_dim = experts[0].output_dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([expert(x) for expert in self.experts], dim=1)


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
