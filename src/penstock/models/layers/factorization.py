"""The parts of factorisation machines and wide models: first order (linear) and second order. B rows."""

from collections.abc import Sequence

import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.models.row_use import RowUse
from penstock.models.table_plan import Slot


class Wide(nn.Module):
    """One number for each row and class: (B, width) -> (B, num_class).

    The vectors of id features are weights already and are added up: all columns for one class, and with several
    classes column i for class i modulo num_class. Numbers of dense features are first multiplied with learned
    weights, one for each class.
    """

    def __init__(self, slots: Sequence[Slot], num_class: int = 1, path: str = "model_config") -> None:
        super().__init__()
        classes: list[int | None] = []
        for slot in slots:
            if slot.table is not None and slot.width < num_class:
                message = f"is {slot.width}; each of the {num_class} classes needs a column of its own"
                raise ConfigError.at(f"{path}.wide_embedding_dim", message)
            classes += [None if slot.table is None else column % num_class for column in range(slot.width)]
        self.columns_of_class = [
            [column for column, its_class in enumerate(classes) if its_class == wanted]
            for wanted in range(num_class)
        ]
        self.dense_columns = [column for column, its_class in enumerate(classes) if its_class is None]
        num_dense = len(self.dense_columns)
        self.weights = nn.Linear(num_dense, num_class, bias=False) if num_dense else None

    def forward(self, wide: torch.Tensor) -> torch.Tensor:
        if self.weights is None and len(self.columns_of_class) == 1:
            return wide.sum(dim=1, keepdim=True)
        sums = [wide[:, columns].sum(dim=1, keepdim=True) for columns in self.columns_of_class]
        total = sums[0] if len(sums) == 1 else torch.cat(sums, dim=1)
        if self.weights is None:
            return total
        weighted: torch.Tensor = self.weights(wide[:, self.dense_columns])
        return total + weighted

    def row_use(self, training: bool) -> RowUse:
        """Columns are copied where they are not simply added up."""
        num_classes = len(self.columns_of_class)
        copied = sum(map(len, self.columns_of_class)) + len(self.dense_columns)
        is_plain = self.weights is None and num_classes == 1
        passing = copied if is_plain and training else 0 if is_plain else 2 * copied
        return RowUse(num_classes + (len(self.dense_columns) if training else 0), passing)


class FactorizationMachine(nn.Module):
    """Sum of the element-wise products of all pairs of feature vectors: (B, F, D) -> (B, D).

    Worked out as half of (square of the sum - sum of the squares), in O(F * D) instead of O(F^2 * D).
    """

    def forward(self, vectors_BFD: torch.Tensor) -> torch.Tensor:
        square_of_sum = vectors_BFD.sum(dim=1).square()
        sum_of_squares = vectors_BFD.square().sum(dim=1)
        return (square_of_sum - sum_of_squares) * 0.5

    def row_use(self, num_vectors: int, dim: int, training: bool) -> RowUse:
        """Squares of all vectors, or their gradients: those of the result, doubled vectors, and their product."""
        vectors = num_vectors * dim
        return RowUse(dim, 3 * vectors + 2 * dim if training else vectors + 2 * dim)
