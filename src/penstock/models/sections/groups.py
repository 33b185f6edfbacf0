"""Options of feature groups: which features enter a model, joined and encoded in which way."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt

from penstock.config.errors import KeyPath, Problem, hint
from penstock.config.section import DropoutRatio, Section, words
from penstock.features.sections import NamedFeature
from penstock.features.sections.types import has_table, has_vector
from penstock.models.sections.layers import AttentionMLP

ALL = "*"
"""Every feature that a group can take."""


def _listed(names: Any) -> Any:
    return [names] if names == ALL else names


FeatureNames = Annotated[list[str], BeforeValidator(_listed, json_schema_input_type=list[str] | Literal["*"])]
MaxLength = Annotated[NonNegativeInt, Field(description="Longest sequence that is looked at; 0: all of it.")]


class _Encoder(Section):
    name: str | None = None
    """Name of the encoder; absent: that of its input and its kind. Its parameters are named after it."""

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

    pooling_type: Annotated[str, words("mean", "sum")] = "mean"
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
    """Steps in each window, from the first step on; write the newest step first."""


class SeqEncoderConfig(Section, group="seq_module"):
    """One encoder."""

    din_encoder: DINEncoder | None = None
    simple_attention: SimpleAttention | None = None
    pooling_encoder: PoolingEncoder | None = None
    multi_window_din_encoder: MultiWindowDINEncoder | None = None
    self_attention_encoder: SelfAttentionEncoder | None = None

    @property
    def kind(self) -> str:
        """Which encoder it is; empty where none was chosen, which is a problem of the file."""
        chosen = self.chosen("seq_module")
        return "" if chosen is None else chosen[0]

    @property
    def section(self) -> Any:
        return getattr(self, self.kind)


NEEDS_QUERY = ("din_encoder", "simple_attention", "multi_window_din_encoder")


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

    group_type: FeatureGroupType = FeatureGroupType.DEEP
    """DEEP: side by side. WIDE: for the wide part. SEQUENCE: padded. JAGGED_SEQUENCE: as it is."""

    sequence_groups: list[SeqGroupConfig] = []
    """Sequences that enter this group through encoders."""

    sequence_encoders: list[SeqEncoderConfig] = []
    """From a sequence to a vector."""

    embedding_name_suffix: str | None = None
    """Added to the names of the tables, so that this group has its own."""

    @property
    def has_steps(self) -> bool:
        """Whether it is a sequence itself."""
        return self.group_type in (FeatureGroupType.SEQUENCE, FeatureGroupType.JAGGED_SEQUENCE)

    def encoder_name(self, encoder: SeqEncoderConfig) -> str:
        """What an encoder of this group is called; names that are not written are made of input and kind."""
        if encoder.section.name:
            return str(encoder.section.name)
        read = encoder.section.input or self.sequence_groups[0].group_name
        return f"{read}_{encoder.kind}" if read else encoder.kind

    def every_name(self) -> list[str]:
        """Its features, with those of its sequence groups."""
        return [*self.feature_names, *(name for each in self.sequence_groups for name in each.feature_names)]

    def resolve_names(self, features: Mapping[str, NamedFeature], new_names: Mapping[str, str]) -> None:
        """Write names of features in place of "*" and of older names."""
        if self.feature_names == [ALL]:
            vectors_only = self.group_name == "fm"
            self.feature_names = [
                name
                for name, each in features.items()
                if not each.section.stub_type
                and (has_vector(each.section) or not vectors_only)
                and (self.has_steps or each.sequence is None)
            ]
        for names in (self.feature_names, *(each.feature_names for each in self.sequence_groups)):
            names[:] = [name if name in features else new_names.get(name, name) for name in names]

    def problems(self, path: KeyPath, features: Mapping[str, NamedFeature]) -> Iterator[Problem]:
        """What is missing where it is used: widths of embeddings, steps and queries, inputs of encoders."""
        for name in self.every_name():
            feature = features.get(name)
            if feature is not None and feature.section.stub_type:
                message = (
                    f"is true, so it only feeds other features, but the group '{self.group_name}' has it"
                )
                yield Problem((*feature.key, "stub_type"), message)
            elif (
                feature is not None and has_vector(feature.section) and feature.section.embedding_dim is None
            ):
                message = f"is required: the group '{self.group_name}' embeds '{name}'"
                yield Problem((*feature.key, "embedding_dim"), message)
        if self.has_steps:
            yield from _without_steps((*path, "feature_names"), self.feature_names, features)
        for position, name in enumerate([] if self.has_steps else self.feature_names):
            feature = features.get(name)
            if feature is not None and feature.sequence is not None and not has_table(feature.section):
                message = f"'{name}' is a sequence of numbers; it enters a {self.group_type} group by sequence_groups"
                yield Problem((*path, "feature_names", position), message)
        for key in ("sequence_groups", "sequence_encoders"):
            if getattr(self, key) and self.group_type is not FeatureGroupType.DEEP:
                yield Problem((*path, key), f"belongs to a DEEP group; this one is {self.group_type}")
                return
        yield from self._nested_problems(path, features)

    def _nested_problems(self, path: KeyPath, features: Mapping[str, NamedFeature]) -> Iterator[Problem]:
        """Every encoder finds its sequence group and a query in it, and every sequence group an encoder."""
        nested = {group.group_name or "": group for group in self.sequence_groups}
        used: dict[str, str] = {}
        inputs: set[str] = set()
        for index, encoder in enumerate(self.sequence_encoders):
            if not encoder.kind:
                continue
            key: KeyPath = (*path, "sequence_encoders", index, encoder.kind)
            read = encoder.section.input
            if read is None and len(nested) != 1:
                num_inputs = len(self.sequence_groups)
                yield Problem((*key, "input"), f"is required: the group has {num_inputs} sequence groups")
                continue
            if read is not None and read not in nested:
                known = [name for name in nested if name]
                near = hint(read, known) if known else "none has a group_name"
                yield Problem((*key, "input"), f"there is no sequence group '{read}'; {near}")
                continue
            inputs.add(read if read is not None else next(iter(nested)))
            names = nested[read if read is not None else next(iter(nested))].feature_names
            if encoder.kind in NEEDS_QUERY and all(
                name in features and features[name].sequence is not None for name in names
            ):
                message = "has no query: its sequence group holds sequences only; add a feature of the row"
                yield Problem(key, message)
            if encoder.kind == "multi_window_din_encoder" and not encoder.section.windows_len:
                yield Problem(
                    (*key, "windows_len"), "is empty; name the steps of each window, such as [5, 20]"
                )
            name = self.encoder_name(encoder)
            if name in used or "." in name:
                problem = "has a dot" if "." in name else f"is there already, in {used[name]}"
                yield Problem((*key, "name"), f"'{name}' {problem}; parameters are named after it")
            used[name] = f"sequence_encoders[{index}]"
        for index, group in enumerate(self.sequence_groups):
            key = (*path, "sequence_groups", index)
            yield from _without_steps((*key, "feature_names"), group.feature_names, features)
            if (group.group_name or "") not in inputs:
                yield Problem(key, "no encoder reads it; add one to sequence_encoders")


def _without_steps(
    key: KeyPath, names: Sequence[str], features: Mapping[str, NamedFeature]
) -> Iterator[Problem]:
    known = [features[name] for name in names if name in features]
    if len(known) == len(names) and all(feature.sequence is None for feature in known):
        yield Problem(
            key, "holds no sequence feature; a sequence group needs one, such as a sequence_id_feature"
        )
    for position, name in enumerate(names):
        feature = features.get(name)
        if (
            feature is not None
            and feature.sequence is not None
            and getattr(feature.section, "weighted", False)
        ):
            yield Problem((*key, position), f"'{name}' has weights, which only pooled ids can have")


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
