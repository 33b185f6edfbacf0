"""The gradient of each row that a lookup touched, from the gradient of what the lookup gave.

torchrec's fused kernels keep these gradients to themselves. An optimizer that has no kernel needs them: one row of
sums for each distinct id, never a gradient as large as the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch
from fbgemm_gpu.split_table_batched_embeddings_ops_common import PoolingMode
from fbgemm_gpu.split_table_batched_embeddings_ops_training import SplitTableBatchedEmbeddingBagsCodegen


@dataclass(frozen=True, slots=True)
class Lookup:
    """The ids of one batch, for all features (F) of a kernel and all rows (B); V values of a feature."""

    ids: torch.Tensor
    offsets_FB: torch.Tensor
    """Where the bag of each row of each feature begins in `ids`, and at last where all end."""

    weights: torch.Tensor | None
    table_of_feature: list[int]
    width_of_table: list[int]
    pooling: PoolingMode

    @classmethod
    def of(
        cls,
        kernel: SplitTableBatchedEmbeddingBagsCodegen,
        indices: torch.Tensor,
        offsets: torch.Tensor,
        per_sample_weights: torch.Tensor | None = None,
    ) -> Self:
        """What a kernel was asked for."""
        widths = [spec[1] for spec in kernel.embedding_specs]
        return cls(
            indices, offsets, per_sample_weights, kernel.feature_table_map, widths, kernel.pooling_mode
        )

    def row_gradients(self, gradient: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """For each table its distinct ids, and the sum of their gradients; a table without ids gives none of both."""
        num_rows = (self.offsets_FB.numel() - 1) // len(self.table_of_feature)
        bounds = self.offsets_FB[::num_rows].tolist() if num_rows else [0] * (len(self.table_of_feature) + 1)
        lengths_FB = self.offsets_FB.diff().view(len(self.table_of_feature), num_rows)
        found: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        column = 0
        for feature, table in enumerate(self.table_of_feature):
            values, width = slice(bounds[feature], bounds[feature + 1]), self.width_of_table[table]
            if self.pooling is PoolingMode.NONE:
                spread = gradient[values]
            else:
                spread = self._spread(gradient[:, column : column + width], lengths_FB[feature], values)
            column += width
            found.setdefault(table, []).append((self.ids[values], spread))
        for table, pieces in found.items():
            yield table, *_summed(torch.cat([ids for ids, _ in pieces]), torch.cat([g for _, g in pieces]))

    def _spread(self, gradient: torch.Tensor, lengths_B: torch.Tensor, values: slice) -> torch.Tensor:
        """From the gradient of each bag to that of each of its values."""
        if self.pooling is PoolingMode.MEAN:
            gradient = gradient / lengths_B.clamp(min=1).unsqueeze(1)
        spread = gradient.index_select(0, torch.repeat_interleave(lengths_B))
        return spread if self.weights is None else spread * self.weights[values].unsqueeze(1)


def _summed(ids: torch.Tensor, gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct ids, and the sum of the gradients of each."""
    rows, place = torch.unique(ids, return_inverse=True)
    sums = gradients.new_zeros(rows.numel(), gradients.shape[1])
    return rows, sums.index_add_(0, place, gradients)
