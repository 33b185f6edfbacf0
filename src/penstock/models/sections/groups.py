"""Options of feature groups: which features enter a model, and joined in which way."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from penstock.config.section import Later, Section
from penstock.models.sections.sequence_encoders import SeqEncoderConfig


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

    feature_names: list[str] = []
    """Names of the features, in the order in which they are joined."""

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


class GroupedModel(Section):
    """A model that reads feature groups by fixed names."""

    required_groups: ClassVar[Mapping[str, FeatureGroupType]] = {}
    """Groups that must be there, with their types."""

    optional_groups: ClassVar[Mapping[str, FeatureGroupType]] = {}
    """Groups that may be there, with their types."""
