"""feature_configs: one section for each feature, under the name of its type."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import PositiveInt

from penstock.config.section import Later, Section
from penstock.features.sections.basic import IdFeature, RawFeature
from penstock.features.sections.derived import (
    CombineFeature,
    ComboFeature,
    ExprFeature,
    LookupFeature,
    MatchFeature,
)
from penstock.features.sections.special import (
    BoolMaskFeature,
    CustomFeature,
    KvDotProduct,
    OverlapFeature,
    TokenizeFeature,
)


class SeqFeatureConfig(Section):
    """One feature of the steps of a sequence."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "feature": (
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
    }
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
        "feature": (
            "id_feature",
            "raw_feature",
            "combo_feature",
            "lookup_feature",
            "match_feature",
            "sequence_feature",
            "expr_feature",
            "overlap_feature",
            "tokenize_feature",
            "custom_feature",
            "kv_dot_product",
            "bool_mask_feature",
            "combine_feature",
            "sequence_id_feature",
            "sequence_raw_feature",
            "sequence_combo_feature",
            "sequence_lookup_feature",
            "sequence_match_feature",
            "sequence_expr_feature",
            "sequence_overlap_feature",
            "sequence_tokenize_feature",
            "sequence_custom_feature",
            "sequence_kv_dot_product",
            "sequence_bool_mask_feature",
            "sequence_combine_feature",
        )
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
