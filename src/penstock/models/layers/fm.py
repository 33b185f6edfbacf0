"""The second-order part of a factorisation machine."""

import torch
from torch import nn


class FactorizationMachine(nn.Module):
    """Sum of the element-wise products of all pairs of feature vectors: (B, F, D) -> (B, D).

    Worked out as half of (square of the sum - sum of the squares), in O(F * D) instead of O(F^2 * D).
    """

    def forward(self, vectors_BFD: torch.Tensor) -> torch.Tensor:
        square_of_sum = vectors_BFD.sum(dim=1).square()
        sum_of_squares = vectors_BFD.square().sum(dim=1)
        return (square_of_sum - sum_of_squares) * 0.5
