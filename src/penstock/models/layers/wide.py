"""The linear part of wide models."""

from collections.abc import Sequence

import torch
from torch import nn

from penstock.models.table_plan import Slot


class Wide(nn.Module):
    """One number for each row: (B, width) -> (B, 1).

    The vectors of id features are weights already and are added up; numbers of dense features are first
    multiplied with a learned weight each.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        super().__init__()
        is_dense = [slot.table is None for slot in slots for _ in range(slot.width)]
        self.dense_columns = [column for column, dense in enumerate(is_dense) if dense]
        self.sparse_columns = [column for column, dense in enumerate(is_dense) if not dense]
        self.weights = nn.Linear(len(self.dense_columns), 1, bias=False) if self.dense_columns else None

    def forward(self, wide: torch.Tensor) -> torch.Tensor:
        """The sum of all parts."""
        if self.weights is None:
            return wide.sum(dim=1, keepdim=True)
        total = wide[:, self.sparse_columns].sum(dim=1, keepdim=True)
        weighted: torch.Tensor = self.weights(wide[:, self.dense_columns])
        return total + weighted
