"""Options of features and of parsing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import NonNegativeInt, PositiveInt

from penstock.config.errors import KeyPath
from penstock.config.section import Later, Legacy, Probability, Section
from penstock.features.sections.types import (
    BoolMaskFeature,
    CombineFeature,
    ComboFeature,
    CustomFeature,
    ExprFeature,
    IdFeature,
    KvDotProduct,
    LookupFeature,
    MatchFeature,
    OverlapFeature,
    RawFeature,
    TokenizeFeature,
)


class FgMode(StrEnum):
    """How the columns of the data become features."""

    FG_NONE = "FG_NONE"
    FG_NORMAL = "FG_NORMAL"
    FG_DAG = "FG_DAG"
    FG_BUCKETIZE = "FG_BUCKETIZE"


class ParsingSection(Section):
    """The part of data_config about turning columns into features, labels and weights."""

    fg_mode: Annotated[FgMode, Later("this fg_mode", values=("FG_DAG", "FG_BUCKETIZE"))] = FgMode.FG_NONE
    """FG_NONE: columns are features already. FG_NORMAL: each feature is made from raw columns on its own.
    FG_DAG: all in one graph. FG_BUCKETIZE: columns are values that still become ids."""

    fg_encoded: Annotated[bool, Legacy("fg_mode")] = True
    """Counts where it is written: true is FG_NONE; false is FG_DAG, or FG_NORMAL with fg_threads 0."""

    fg_encoded_multival_sep: str = "\x03"
    """Between the values of one row, where columns are features already."""

    fg_threads: NonNegativeInt = 1
    """Threads that work on the graph of features."""

    label_fields: list[str] = []
    """Columns with the labels."""

    sample_weight_fields: list[str] = []
    """Columns with the weights of rows."""

    sample_mask_prob: Annotated[Probability, Later("sample_mask_prob")] = 0.0
    """Share of the values of use_mask features that is hidden in training."""

    negative_sample_mask_prob: Annotated[Probability, Later("negative_sample_mask_prob")] = 0.0
    """The same for sampled negatives."""

    force_base_data_group: Annotated[bool, Later("force_base_data_group")] = False
    """Keep all features in one group of rows, whether or not there are negatives."""

    def resolved_fg_mode(self) -> FgMode:
        """The mode that counts: the old fg_encoded wins where it is written."""
        if "fg_encoded" not in self.model_fields_set:
            return self.fg_mode
        if self.fg_encoded:
            return FgMode.FG_NONE
        return FgMode.FG_DAG if self.fg_threads > 0 else FgMode.FG_NORMAL


_KINDS = (
    "id_feature",
    "raw_feature",
    "combo_feature",
    "lookup_feature",
    "match_feature",
    "expr_feature",
    "overlap_feature",
    "tokenize_feature",
    "custom_feature",
    "kv_dot_product",
    "bool_mask_feature",
    "combine_feature",
)


class SeqFeatureConfig(Section):
    """One feature of the steps of a sequence."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"feature": _KINDS}
    required_one_of: ClassVar[tuple[str, ...]] = ("feature",)

    id_feature: IdFeature | None = None
    raw_feature: RawFeature | None = None
    combo_feature: ComboFeature | None = None
    lookup_feature: LookupFeature | None = None
    match_feature: MatchFeature | None = None
    expr_feature: ExprFeature | None = None
    overlap_feature: OverlapFeature | None = None
    tokenize_feature: TokenizeFeature | None = None
    custom_feature: CustomFeature | None = None
    kv_dot_product: KvDotProduct | None = None
    bool_mask_feature: BoolMaskFeature | None = None
    combine_feature: CombineFeature | None = None


class SequenceFeature(Section):
    """Several features of the same steps; their names become sequence_name__feature_name."""

    sequence_name: str
    """Name of the sequence."""

    sequence_length: PositiveInt
    """Longest sequence; longer ones are cut."""

    sequence_delim: str = ";"
    """Between the steps."""

    sequence_pk: str | None = None
    """Where the keys of the steps come from: side:column."""

    features: list[SeqFeatureConfig] = []
    """The features of a step."""


class FeatureConfig(Section):
    """One feature."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "feature": (*_KINDS[:5], "sequence_feature", *_KINDS[5:], *(f"sequence_{kind}" for kind in _KINDS))
    }
    required_one_of: ClassVar[tuple[str, ...]] = ("feature",)

    id_feature: IdFeature | None = None
    raw_feature: RawFeature | None = None
    combo_feature: Annotated[ComboFeature | None, Later("combo_feature")] = None
    lookup_feature: Annotated[LookupFeature | None, Later("lookup_feature")] = None
    match_feature: Annotated[MatchFeature | None, Later("match_feature")] = None
    sequence_feature: Annotated[SequenceFeature | None, Later("sequence_feature")] = None
    expr_feature: Annotated[ExprFeature | None, Later("expr_feature")] = None
    overlap_feature: Annotated[OverlapFeature | None, Later("overlap_feature")] = None
    tokenize_feature: Annotated[TokenizeFeature | None, Later("tokenize_feature")] = None
    custom_feature: Annotated[CustomFeature | None, Later("custom_feature")] = None
    kv_dot_product: Annotated[KvDotProduct | None, Later("kv_dot_product")] = None
    bool_mask_feature: Annotated[BoolMaskFeature | None, Later("bool_mask_feature")] = None
    combine_feature: Annotated[CombineFeature | None, Later("combine_feature")] = None
    sequence_id_feature: Annotated[IdFeature | None, Later("sequence_id_feature")] = None
    sequence_raw_feature: Annotated[RawFeature | None, Later("sequence_raw_feature")] = None
    sequence_combo_feature: Annotated[ComboFeature | None, Later("sequence_combo_feature")] = None
    sequence_lookup_feature: Annotated[LookupFeature | None, Later("sequence_lookup_feature")] = None
    sequence_match_feature: Annotated[MatchFeature | None, Later("sequence_match_feature")] = None
    sequence_expr_feature: Annotated[ExprFeature | None, Later("sequence_expr_feature")] = None
    sequence_overlap_feature: Annotated[OverlapFeature | None, Later("sequence_overlap_feature")] = None
    sequence_tokenize_feature: Annotated[TokenizeFeature | None, Later("sequence_tokenize_feature")] = None
    sequence_custom_feature: Annotated[CustomFeature | None, Later("sequence_custom_feature")] = None
    sequence_kv_dot_product: Annotated[KvDotProduct | None, Later("sequence_kv_dot_product")] = None
    sequence_bool_mask_feature: Annotated[BoolMaskFeature | None, Later("sequence_bool_mask_feature")] = None
    sequence_combine_feature: Annotated[CombineFeature | None, Later("sequence_combine_feature")] = None


@dataclass(frozen=True, slots=True)
class NamedFeature:
    """One feature of a run file: where it stands, its name, and its section."""

    place: KeyPath
    name: str
    section: Any


def named_features(configs: Sequence[FeatureConfig]) -> Iterator[NamedFeature]:
    """Every feature in order; those of a sequence are called sequence__feature."""
    for index, config in enumerate(configs):
        chosen = config.chosen("feature")
        if chosen is None:
            continue
        kind, section = chosen
        place: KeyPath = ("feature_configs", index, kind)
        if not isinstance(section, SequenceFeature):
            yield NamedFeature(place, section.feature_name, section)
            continue
        for position, step in enumerate(section.features):
            if (inner := step.chosen("feature")) is not None:
                name = f"{section.sequence_name}__{inner[1].feature_name}"
                yield NamedFeature((*place, "features", position, inner[0]), name, inner[1])
