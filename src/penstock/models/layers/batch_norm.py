"""Batch normalisation that accepts a batch of one row."""

import torch
from torch import nn
from torch.nn import functional


@torch.fx.wrap
def has_statistics(x: torch.Tensor) -> bool:
    """Whether there are rows enough for a variance; a function, so that tracing does not look inside."""
    return x.shape[0] > 1


class BatchNorm(nn.BatchNorm1d):
    """As in torch, but one row has no variance: in training it is normalised by the running statistics."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(B, width) -> (B, width)."""
        by_batch = has_statistics(input) if self.training else False
        momentum = 0.1 if self.momentum is None else self.momentum
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_batch, momentum, self.eps
        )
