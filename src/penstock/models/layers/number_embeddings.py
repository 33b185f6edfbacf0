"""From numbers to vectors without intervals: (N, numbers) -> (N, numbers * dim), each with its own parameters."""

import torch
from torch import nn
from torch.nn import functional

from penstock.features.sections.tables import AutoDisEmbedding
from penstock.features.sections.types import AutoDisOrMlp


class LinearEmbedding(nn.Module):
    """Each number times a learned vector, and a learned vector added."""

    def __init__(self, num_numbers: int, dim: int) -> None:
        super().__init__()
        self.output_dim = num_numbers * dim
        self.weight = nn.Parameter(torch.empty(num_numbers, dim))
        self.bias = nn.Parameter(torch.empty(num_numbers, dim))
        for parameter in (self.weight, self.bias):
            nn.init.uniform_(parameter, -1.0, 1.0)  # as a linear layer with one input

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(self.bias, numbers.unsqueeze(2), self.weight).flatten(1)


class AutoDis(nn.Module):
    """A mixture of `num_channels` learned vectors; a small network of the number says how much of each.

    Guo et al., "An Embedding Learning Framework for Numerical Features in CTR Prediction", 2021. F numbers, C channels.
    """

    def __init__(self, num_numbers: int, dim: int, section: AutoDisEmbedding) -> None:
        super().__init__()
        channels = section.num_channels
        self.output_dim, self.temperature, self.keep_prob = (
            num_numbers * dim,
            section.temperature,
            section.keep_prob,
        )
        self.first = nn.Parameter(torch.empty(num_numbers, channels))
        self.second = nn.Parameter(torch.empty(num_numbers, channels, channels))
        self.vectors = nn.Parameter(torch.empty(num_numbers, channels, dim))
        nn.init.uniform_(self.first, -1.0, 1.0)
        for each in (*self.second, *self.vectors):
            nn.init.xavier_normal_(each.data)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        hidden_NFC = functional.leaky_relu(numbers.unsqueeze(2) * self.first)
        scores_NFC = torch.einsum("nfc,fcd->nfd", hidden_NFC, self.second) + self.keep_prob * hidden_NFC
        weights_NFC = torch.softmax(scores_NFC / self.temperature, dim=2)
        return torch.einsum("nfc,fcd->nfd", weights_NFC, self.vectors).flatten(1)


def build_number_embedding(section: AutoDisOrMlp, num_numbers: int, dim: int) -> AutoDis | LinearEmbedding:
    if isinstance(section, AutoDisEmbedding):
        return AutoDis(num_numbers, dim, section)
    return LinearEmbedding(num_numbers, dim)
