"""Options of feature groups: which features enter a model, joined and encoded in which way."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt

from penstock.config.errors import KeyPath, Problem, hint
from penstock.config.section import DropoutRatio, Later, Section
from penstock.features.sections import NamedFeature
from penstock.features.sections.types import WIDTH_STEP, has_table
from penstock.models.sections.layers import AttentionMLP

ALL = "*"
"""Every feature that a group can take."""


def _listed(names: Any) -> Any:
    return [names] if names == ALL else names


FeatureNames = Annotated[list[str], BeforeValidator(_listed, json_schema_input_type=list[str] | Literal["*"])]
MaxLength = Annotated[NonNegativeInt, Field(description="Longest sequence that is looked at; 0: all of it.")]


class _Encoder(Section):
    name: str | None = None
    """Name of the encoder; absent: its input's."""

    input: str | None = None
    """Sequence group it reads; absent: the only one of its feature group."""


class DINEncoder(_Encoder):
    """Attention of the query to each step of the history."""

    attn_mlp: AttentionMLP
    max_seq_length: MaxLength = 0


class SimpleAttention(_Encoder):
    """Attention by the plain product of query and step."""

    max_seq_length: MaxLength = 0


class PoolingEncoder(_Encoder):
    """Mean or sum over the steps."""

    pooling_type: str = "mean"
    """mean or sum."""

    max_seq_length: MaxLength = 0


class SelfAttentionEncoder(_Encoder):
    """Self-attention over the steps, then a mean."""

    multihead_attn_dim: PositiveInt = 512
    """Width of the attention."""

    num_heads: PositiveInt = 8
    """Attention heads."""

    dropout: DropoutRatio = 0.0
    """Share of attention weights dropped in training."""

    max_seq_length: MaxLength = 0


class MultiWindowDINEncoder(_Encoder):
    """Attention over windows of the history."""

    attn_mlp: AttentionMLP
    windows_len: list[PositiveInt] = []
    """Steps in each window, from the newest back."""


class SeqEncoderConfig(Section, group="seq_module"):
    """One encoder."""

    din_encoder: DINEncoder | None = None
    simple_attention: SimpleAttention | None = None
    pooling_encoder: PoolingEncoder | None = None
    multi_window_din_encoder: MultiWindowDINEncoder | None = None
    self_attention_encoder: SelfAttentionEncoder | None = None


class FeatureGroupType(StrEnum):
    """How the features of a group are joined."""

    DEEP = "DEEP"
    WIDE = "WIDE"
    SEQUENCE = "SEQUENCE"
    JAGGED_SEQUENCE = "JAGGED_SEQUENCE"


class SeqGroupConfig(Section):
    """A sequence group inside a DEEP group: the query's features and the history's."""

    group_name: str | None = None
    """Name that the encoders refer to; may be left out where there is only one."""

    feature_names: list[str] = []
    """Features of the query and of the history."""

    embedding_name_suffix: str | None = None
    """Added to the names of the tables, so that this group has its own."""


class FeatureGroupConfig(Section):
    """Features that a model receives together under one name."""

    group_name: str
    """Name that the model refers to, such as deep, wide or fm."""

    feature_names: FeatureNames = []
    """Names of the features, in the order in which they are joined; "*": all, in fm all with an embedding."""

    group_type: Annotated[
        FeatureGroupType, Later("a sequence group", values=("SEQUENCE", "JAGGED_SEQUENCE"))
    ] = FeatureGroupType.DEEP
    """DEEP: side by side. WIDE: for the wide part. SEQUENCE: padded. JAGGED_SEQUENCE: as it is."""

    sequence_groups: Annotated[list[SeqGroupConfig], Later("sequence_groups in a feature group")] = []
    """Sequences that enter this group through encoders."""

    sequence_encoders: Annotated[list[SeqEncoderConfig], Later("sequence_encoders in a feature group")] = []
    """From a sequence to a vector."""

    embedding_name_suffix: Annotated[str | None, Later("embedding_name_suffix of a feature group")] = None
    """Added to the names of the tables, so that this group has its own."""

    def every_name(self) -> list[str]:
        """Its features, with those of its sequence groups."""
        return [*self.feature_names, *(name for each in self.sequence_groups for name in each.feature_names)]

    def resolve_names(self, features: Mapping[str, NamedFeature], new_names: Mapping[str, str]) -> None:
        """Write names of features in place of "*" and of older names."""
        if self.feature_names == [ALL]:
            vectors_only = self.group_name == "fm"
            self.feature_names = [
                name for name, each in features.items() if has_table(each.section) or not vectors_only
            ]
        for names in (self.feature_names, *(each.feature_names for each in self.sequence_groups)):
            names[:] = [name if name in features else new_names.get(name, name) for name in names]

    def problems(self, path: KeyPath, features: Mapping[str, NamedFeature]) -> Iterator[Problem]:
        """What is missing where it is used: widths of embeddings, and inputs of encoders."""
        for name in self.every_name():
            feature = features.get(name)
            if feature is not None and has_table(feature.section) and feature.section.embedding_dim is None:
                message = f"is required: the group '{self.group_name}' embeds '{name}'"
                yield Problem((*feature.key, "embedding_dim"), message)
        num_inputs = len(self.sequence_groups)
        for index, encoder in enumerate(self.sequence_encoders):
            kind, section = encoder.chosen("seq_module") or ("", None)
            if section is not None and section.input is None and num_inputs != 1:
                key = (*path, "sequence_encoders", index, kind, "input")
                yield Problem(key, f"is required: the group has {num_inputs} sequence groups")


class GroupedModel(Section):
    """A model that reads feature groups by fixed names."""

    required_groups: ClassVar[Mapping[str, FeatureGroupType]] = {}
    """Groups that must be there, with their types."""

    optional_groups: ClassVar[Mapping[str, FeatureGroupType]] = {}
    """Groups that may be there, with their types."""

    def group_problems(
        self, name: str, groups: Sequence[FeatureGroupConfig], features: Mapping[str, NamedFeature]
    ) -> Iterator[Problem]:
        """The groups are those that the model reads; `name` is its key."""
        path = ("model_config", "feature_groups")
        known = {**self.required_groups, **self.optional_groups}
        for index, group in enumerate(groups):
            expected = known.get(group.group_name)
            if expected is None:
                message = f"{name} has no group '{group.group_name}'; {hint(group.group_name, known)}"
                yield Problem((*path, index, "group_name"), message)
            elif group.group_type is not expected:
                message = f"is {group.group_type}; the group '{group.group_name}' of {name} is {expected}"
                yield Problem((*path, index, "group_type"), message)
        for required, group_type in self.required_groups.items():
            if all(group.group_name != required for group in groups):
                yield Problem(path, f"{name} needs a group '{required}' of type {group_type}")
        width = getattr(self, "wide_embedding_dim", 0)
        if width % WIDTH_STEP:
            message = f"is {width}, not a multiple of {WIDTH_STEP}; use {width + -width % WIDTH_STEP}"
            yield Problem(("model_config", name, "wide_embedding_dim"), message)
