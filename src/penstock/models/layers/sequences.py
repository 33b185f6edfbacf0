"""From a sequence of vectors to one vector: what DEEP groups and towers make of a history.

Every encoder takes a query (B, Q) or None, a padded sequence (B, T, D) whose steps behind the lengths (B) are zeros,
and gives (B, output_dim); a row without steps gets zeros. B rows, T steps, S steps of all rows that are there.
"""

import torch
from torch import nn
from torch.nn import functional

from penstock.config.errors import ConfigError
from penstock.config.section import Section
from penstock.models.layers.mlp import MLP
from penstock.models.sections.groups import (
    DINEncoder,
    MultiWindowDINEncoder,
    PoolingEncoder,
    SelfAttentionEncoder,
    SimpleAttention,
)
from penstock.models.sections.layers import MLP as MlpSection

ATTENTION_PARTS = 4
"""Query, step, their difference and their product, side by side."""


@torch.fx.wrap
def step_mask(sequence: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """(B, T): which steps are there."""
    positions_T = torch.arange(sequence.shape[1], device=lengths.device)
    return positions_T.unsqueeze(0) < lengths.unsqueeze(1)


class SequenceEncoder(nn.Module):
    """What all encoders share: the first `max_steps` are looked at (0: all)."""

    output_dim: int
    hidden_floats: int = 0
    """Numbers that it makes of one step, beside the step itself."""

    planned_steps: int = 0
    """Of a row, for the memory plan."""

    def __init__(self, max_steps: int = 0) -> None:
        super().__init__()
        self.max_steps = max_steps

    @property
    def floats_per_row(self) -> int:
        """For the memory plan."""
        return self.hidden_floats * min(self.planned_steps, self.max_steps or self.planned_steps)

    def cut(self, sequence: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.max_steps:
            return sequence, lengths
        return sequence[:, : self.max_steps], lengths.clamp(max=self.max_steps)


class _WithQuery(SequenceEncoder):
    """A query that is narrower than a step is filled up with zeros."""

    def __init__(self, query_dim: int, sequence_dim: int, path: str, max_steps: int = 0) -> None:
        super().__init__(max_steps)
        if query_dim > sequence_dim:
            message = f"its query is {query_dim} wide, a step of its sequence {sequence_dim}; a query may not be wider"
            raise ConfigError.at(path, message)
        self.missing_dim, self.output_dim = sequence_dim - query_dim, sequence_dim

    def wide_query(self, query: torch.Tensor) -> torch.Tensor:
        return functional.pad(query, (0, self.missing_dim)) if self.missing_dim else query


class SimpleAttentionLayer(_WithQuery):
    """softmax(query . step) over the steps weighs them."""

    def forward(self, query: torch.Tensor, sequence: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        sequence, lengths = self.cut(sequence, lengths)
        scores_BT = (sequence @ self.wide_query(query).unsqueeze(2)).squeeze(2)
        return attend(scores_BT, sequence, step_mask(sequence, lengths))


class DINLayer(_WithQuery):
    """Attention of a query to each step, scored by an MLP.

    Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", 2018; its scores are normalised here. The
    MLP runs on the steps that are there, so that padding enters neither its time nor its batch normalisation.
    """

    def __init__(
        self, query_dim: int, sequence_dim: int, attn_mlp: MlpSection, path: str, max_steps: int = 0
    ) -> None:
        super().__init__(query_dim, sequence_dim, path, max_steps)
        self.mlp = MLP(ATTENTION_PARTS * sequence_dim, attn_mlp, f"{path}.attn_mlp")
        self.score = nn.Linear(self.mlp.output_dim, 1)
        self.hidden_floats = ATTENTION_PARTS * sequence_dim + sum(attn_mlp.hidden_units)

    def forward(self, query: torch.Tensor, sequence: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        sequence, lengths = self.cut(sequence, lengths)
        mask_BT = step_mask(sequence, lengths)
        return attend(self.scores(query, sequence, mask_BT), sequence, mask_BT)

    def scores(self, query: torch.Tensor, sequence: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """(B, T), 0 where there is no step."""
        steps_SD, rows_S = sequence[mask_BT], mask_BT.nonzero()[:, 0]
        query_SD = self.wide_query(query).index_select(0, rows_S)
        pairs = torch.cat([query_SD, steps_SD, query_SD - steps_SD, query_SD * steps_SD], dim=1)
        scores_S: torch.Tensor = self.score(self.mlp(pairs)).squeeze(1)
        return scores_S.new_zeros(mask_BT.shape).masked_scatter(mask_BT, scores_S)


class MultiWindowDINLayer(DINLayer):
    """The mean of scored steps in each window of the sequence, from its first step on, and the query beside them."""

    def __init__(
        self,
        query_dim: int,
        sequence_dim: int,
        attn_mlp: MlpSection,
        path: str,
        windows: list[int],
    ) -> None:
        super().__init__(query_dim, sequence_dim, attn_mlp, path, sum(windows))
        self.windows, self.output_dim = windows, sequence_dim * (len(windows) + 1)

    def forward(self, query: torch.Tensor, sequence: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        sequence, lengths = self.cut(sequence, lengths)
        scores_BT = self.scores(query, sequence, step_mask(sequence, lengths))
        weighed = scores_BT.unsqueeze(2) * sequence
        means, start = [], 0
        for window in self.windows:
            counts_B1 = (lengths - start).clamp(1, window).unsqueeze(1)
            means.append(weighed[:, start : start + window].sum(dim=1) / counts_B1)
            start += window
        return torch.cat([*means, self.wide_query(query)], dim=1)


class PoolingLayer(SequenceEncoder):
    """The sum of the steps, or their mean."""

    def __init__(self, sequence_dim: int, pooling_type: str, max_steps: int = 0) -> None:
        super().__init__(max_steps)
        self.output_dim, self.is_mean = sequence_dim, pooling_type == "mean"

    def forward(
        self, query: torch.Tensor | None, sequence: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        sequence, lengths = self.cut(sequence, lengths)
        total = sequence.sum(dim=1)
        return total / lengths.clamp(min=1).unsqueeze(1) if self.is_mean else total


class SelfAttentionLayer(SequenceEncoder):
    """Attention of the steps to each other, at a width of its own, then the mean of what they become."""

    def __init__(self, sequence_dim: int, section: SelfAttentionEncoder, path: str) -> None:
        super().__init__(section.max_seq_length)
        self.output_dim = section.multihead_attn_dim
        if self.output_dim % section.num_heads:
            message = f"is {self.output_dim}, which {section.num_heads} heads (num_heads) do not divide"
            raise ConfigError.at(f"{path}.multihead_attn_dim", message)
        self.input = nn.Linear(sequence_dim, self.output_dim)
        self.attention = nn.MultiheadAttention(
            self.output_dim, section.num_heads, dropout=section.dropout, batch_first=True
        )
        self.hidden_floats = 5 * self.output_dim

    def forward(
        self, query: torch.Tensor | None, sequence: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        sequence, lengths = self.cut(sequence, lengths)
        mask_BT = step_mask(sequence, lengths)
        # Attention to nothing at all would be NaN: a row without steps looks at one zero, which is left out below.
        ignored_BT = step_mask(sequence, lengths.clamp(min=1)).logical_not()
        steps = self.input(sequence)
        output = self.attention(steps, steps, steps, key_padding_mask=ignored_BT, need_weights=False)[0]
        total: torch.Tensor = (output * mask_BT.unsqueeze(2)).sum(dim=1)
        return total / lengths.clamp(min=1).unsqueeze(1)


def attend(scores_BT: torch.Tensor, sequence: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """The mean of the steps, weighed by the softmax of their scores: (B, D)."""
    # The smallest number rather than minus infinity: a row without steps gets no NaN, but zeros of the padding.
    lowest = torch.finfo(torch.float32).min
    weights_BT = torch.softmax(scores_BT.float().masked_fill(mask_BT.logical_not(), lowest), dim=1)
    return (weights_BT.to(sequence.dtype).unsqueeze(1) @ sequence).squeeze(1)


def build_encoder(section: Section, query_dim: int, sequence_dim: int, path: str) -> SequenceEncoder:
    """The encoder of one section of the run file, which stands at `path`."""
    match section:
        case DINEncoder():
            return DINLayer(query_dim, sequence_dim, section.attn_mlp, path, section.max_seq_length)
        case SimpleAttention():
            return SimpleAttentionLayer(query_dim, sequence_dim, path, section.max_seq_length)
        case PoolingEncoder():
            return PoolingLayer(sequence_dim, section.pooling_type, section.max_seq_length)
        case MultiWindowDINEncoder():
            return MultiWindowDINLayer(query_dim, sequence_dim, section.attn_mlp, path, section.windows_len)
        case SelfAttentionEncoder():
            return SelfAttentionLayer(sequence_dim, section, path)
    raise TypeError(f"{type(section).__name__} is no encoder")
