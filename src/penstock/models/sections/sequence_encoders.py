"""Options of the encoders that turn a sequence group into one vector."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from penstock.config.section import DropoutRatio, Section
from penstock.models.sections.layers import MLP


class DINEncoder(Section):
    """Attention of the query to each step of the history."""

    name: str | None = None
    """Name of the encoder; absent: its input's."""

    input: str
    """Sequence group it reads."""

    attn_mlp: MLP
    """Scores one step of the history against the query."""

    max_seq_length: NonNegativeInt = 0
    """Longest sequence that is looked at; 0: all of it."""


class SimpleAttention(Section):
    """Attention by the plain product of query and step."""

    name: str | None = None
    """Name of the encoder; absent: its input's."""

    input: str
    """Sequence group it reads."""

    max_seq_length: NonNegativeInt = 0
    """Longest sequence that is looked at; 0: all of it."""


class PoolingEncoder(Section):
    """Mean or sum over the steps."""

    name: str | None = None
    """Name of the encoder; absent: its input's."""

    input: str
    """Sequence group it reads."""

    pooling_type: str = "mean"
    """mean or sum."""

    max_seq_length: NonNegativeInt = 0
    """Longest sequence that is looked at; 0: all of it."""


class SelfAttentionEncoder(Section):
    """Self-attention over the steps, then a mean."""

    name: str | None = None
    """Name of the encoder; absent: its input's."""

    input: str
    """Sequence group it reads."""

    multihead_attn_dim: PositiveInt = 512
    """Width of the attention."""

    num_heads: PositiveInt = 8
    """Attention heads."""

    dropout: DropoutRatio = 0.0
    """Share of attention weights dropped in training."""

    max_seq_length: NonNegativeInt = 0
    """Longest sequence that is looked at; 0: all of it."""


class MultiWindowDINEncoder(Section):
    """Attention over windows of the history."""

    name: str | None = None
    """Name of the encoder; absent: its input's."""

    input: str
    """Sequence group it reads."""

    attn_mlp: MLP
    """Scores one step of the history against the query."""

    windows_len: list[PositiveInt] = []
    """Steps in each window, from the newest back."""


class SeqEncoderConfig(Section):
    """One encoder."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "seq_module": (
            "din_encoder",
            "simple_attention",
            "pooling_encoder",
            "multi_window_din_encoder",
            "self_attention_encoder",
        ),
    }
    required_one_of: ClassVar[tuple[str, ...]] = ("seq_module",)

    din_encoder: DINEncoder | None = None
    simple_attention: SimpleAttention | None = None
    pooling_encoder: PoolingEncoder | None = None
    multi_window_din_encoder: MultiWindowDINEncoder | None = None
    self_attention_encoder: SelfAttentionEncoder | None = None
