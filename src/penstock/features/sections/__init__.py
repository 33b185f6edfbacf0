"""Options of features and of parsing."""

from penstock.features.sections.basic import IdFeature, RawFeature
from penstock.features.sections.derived import (
    CombineFeature,
    ComboFeature,
    ExprFeature,
    LookupFeature,
    MatchFeature,
)
from penstock.features.sections.feature import FeatureConfig, SeqFeatureConfig, SequenceFeature
from penstock.features.sections.options import OutOfRange
from penstock.features.sections.parsing import FgMode, ParsingSection
from penstock.features.sections.special import (
    BoolMaskFeature,
    CustomFeature,
    KvDotProduct,
    OverlapFeature,
    TextNormalizeOption,
    TextNormalizer,
    TokenizeFeature,
)
from penstock.features.sections.tables import (
    AutoDisEmbedding,
    DistanceLFU_EvictionPolicy,
    DynamicEmbedding,
    DynamicEmbFrequencyAdmissionStrategy,
    DynamicEmbInitializerArgs,
    LFU_EvictionPolicy,
    LRU_EvictionPolicy,
    MLPEmbedding,
    ParameterConstraints,
    ZeroCollisionHash,
)

__all__ = [
    "AutoDisEmbedding",
    "BoolMaskFeature",
    "CombineFeature",
    "ComboFeature",
    "CustomFeature",
    "DistanceLFU_EvictionPolicy",
    "DynamicEmbFrequencyAdmissionStrategy",
    "DynamicEmbInitializerArgs",
    "DynamicEmbedding",
    "ExprFeature",
    "FeatureConfig",
    "FgMode",
    "IdFeature",
    "KvDotProduct",
    "LFU_EvictionPolicy",
    "LRU_EvictionPolicy",
    "LookupFeature",
    "MLPEmbedding",
    "MatchFeature",
    "OutOfRange",
    "OverlapFeature",
    "ParameterConstraints",
    "ParsingSection",
    "RawFeature",
    "SeqFeatureConfig",
    "SequenceFeature",
    "TextNormalizeOption",
    "TextNormalizer",
    "TokenizeFeature",
    "ZeroCollisionHash",
]
