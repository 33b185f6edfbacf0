"""Options that several types of features share: values, vocabularies, and their embedding tables."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from penstock.config.errors import Problem
from penstock.config.section import Ignored, Later, Probability, Section, raise_problems, words


class ParameterConstraints(Section):
    """What the sharding planner may choose from."""

    sharding_types: list[str] = []
    """Such as table_wise, row_wise, column_wise, data_parallel."""

    compute_kernels: list[str] = []
    """Such as fused, dense."""


class LFU_EvictionPolicy(Section):
    """The least often seen id leaves first."""


class LRU_EvictionPolicy(Section):
    """The longest unseen id leaves first."""

    decay_exponent: float = 1.0
    """How fast age counts."""


class DistanceLFU_EvictionPolicy(Section):
    """Seldom seen and long unseen ids leave first."""

    decay_exponent: float = 1.0
    """How fast age counts."""


class ZeroCollisionHash(Section):
    """A table whose rows are given to ids as they appear, and taken back."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"eviction_policy": ("lfu", "lru", "distance_lfu")}

    zch_size: PositiveInt
    """Rows of the table."""

    eviction_interval: PositiveInt = 5
    """Steps between evictions."""

    threshold_filtering_func: str | None = None
    """Function of the counts that tells which new ids may enter."""

    lfu: LFU_EvictionPolicy | None = None
    lru: LRU_EvictionPolicy | None = None
    distance_lfu: DistanceLFU_EvictionPolicy | None = None


class AutoDisEmbedding(Section):
    """A number as a learned mixture of vectors."""

    num_channels: PositiveInt
    """Vectors in the mixture."""

    temperature: PositiveFloat = 0.1
    """How sharply the mixture decides."""

    keep_prob: Probability = 0.8
    """Weight of the plain path beside the learned one."""


class MLPEmbedding(Section):
    """A number as a vector by one linear layer."""


class DynamicEmbInitializerArgs(Section):
    """How a new row of a growing table starts."""

    mode: str | None = None
    """Such as NORMAL, UNIFORM, CONSTANT."""

    mean: float = 0.0
    std_dev: float | None = None
    lower: float | None = None
    upper: float | None = None
    value: float = 0.0


_COUNTED = "as many ids are counted as the table has rows"
_OF_GPU = "it is about the memory of a GPU"


class DynamicEmbFrequencyAdmissionStrategy(Section):
    """An id gets a row when it was seen often enough."""

    threshold: PositiveInt
    """How often."""

    initializer_args: Annotated[
        DynamicEmbInitializerArgs | None, Ignored("ids without a row have row 0, which is learned")
    ] = None
    """The vector of ids that have no row yet."""

    counter_capacity: Annotated[PositiveInt | None, Ignored(_COUNTED)] = None
    """Ids that are counted."""

    counter_bucket_capacity: Annotated[PositiveInt, Ignored(_COUNTED)] = 1024
    """Ids in one bucket of the counter."""


class DynamicEmbedding(Section):
    """A table that grows with the ids it sees."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "admission_strategy": ("frequency_admission_strategy",)
    }

    max_capacity: PositiveInt
    """Most rows of the table."""

    initializer_args: Annotated[DynamicEmbInitializerArgs | None, Ignored("rows start by init_fn")] = None
    """How a new row starts."""

    eval_initializer_args: Annotated[
        DynamicEmbInitializerArgs | None, Ignored("unknown ids have row 0, which is learned")
    ] = None
    """The vector of an unknown id in evaluation."""

    score_strategy: str = "STEP"
    """What decides which rows leave: STEP, TIMESTAMP, LFU."""

    cache_load_factor: Annotated[Probability | None, Ignored(_OF_GPU)] = None
    """Share of the table that is kept on the device."""

    init_capacity_per_rank: Annotated[PositiveInt | None, Ignored(_OF_GPU)] = None
    """Rows at the start, on each rank."""

    init_table: Annotated[str | None, Later("init_table of dynamicemb")] = None
    """Table of ids and vectors to start from."""

    bucket_capacity: Annotated[NonNegativeInt | None, Ignored(_OF_GPU)] = None
    """Rows in one bucket of the hash table."""

    frequency_admission_strategy: DynamicEmbFrequencyAdmissionStrategy | None = None


class EmbeddingOptions(Section):
    """What every feature says: its name, and the table it is looked up in, if any."""

    feature_name: str
    """Name of the feature; groups refer to it, and FG_NONE reads the column of this name."""

    embedding_name: str | None = None
    """Name of the table; features that give the same name share it. Absent: a table of its own."""

    embedding_dim: PositiveInt | None = None
    """Width of a row of the table; a feature with ids that stands in a group needs one. YAML, JSON: 16 if absent."""

    pooling: Annotated[str, words("sum", "mean")] = "sum"
    """How the vectors of several values become one: sum or mean."""

    init_fn: str | None = None
    """Initialiser of the table, such as nn.init.normal_,std=0.01."""

    trainable: bool = True
    """Whether the table moves."""

    data_type: Annotated[str, words("FP32", "FP16")] = "FP32"
    """Type of the table's numbers: FP32 or FP16."""

    embedding_constraints: Annotated[
        ParameterConstraints | None, Later("embedding_constraints", harmless=True)
    ] = None
    """What the sharding planner may choose from for this table."""

    fg_encoded_default_value: str | None = None
    """Value of an empty or missing row, where columns are features already."""

    use_mask: bool | None = None
    """Whether sample_mask_prob hides values of this feature."""

    stub_type: bool = False
    """The feature only feeds other features."""

    sequence_length: PositiveInt | None = None
    """Longest sequence; longer ones are cut."""

    sequence_delim: str = ";"
    """Between the steps of a sequence."""

    sequence_fields: list[str] = []
    """Inputs that are sequences; absent: all of them."""


class OutOfRange(StrEnum):
    """What happens to an id that is not below num_buckets."""

    error = "error"
    clamp = "clamp"
    oov = "oov"


def _once(vocabulary: list[str]) -> list[str]:
    seen: set[str] = set()
    for value in vocabulary:
        if value in seen:
            raise ValueError(f"has '{value}' more than once")
        seen.add(value)
    return vocabulary


class VocabularyOptions(Section):
    """How values become row numbers of a table, beyond num_buckets."""

    hash_bucket_size: PositiveInt | None = None
    """Rows of the table; a value's row is its hash modulo this."""

    vocab_list: Annotated[list[str], AfterValidator(_once)] = []
    """The known values, in the order of their rows."""

    vocab_dict: dict[str, NonNegativeInt] = {}
    """The known values with their rows."""

    vocab_file: str | None = None
    """File of known values, one a line, or with their rows."""

    asset_dir: str | None = None
    """Folder of vocab_file."""

    zch: ZeroCollisionHash | None = None
    """Rows that are given to ids as they appear."""

    dynamicemb: DynamicEmbedding | None = None
    """A table that grows with the ids it sees."""

    default_bucketize_value: NonNegativeInt | None = None
    """Row of unknown values. Absent: row 0 is the default, 1 the unknown, and the vocabulary starts at 2."""


class BucketOptions(Section):
    """Ids that are row numbers already."""

    num_buckets: PositiveInt | None = None
    """Rows of the table; ids are from 0 to below it."""

    out_of_range: Annotated[OutOfRange, Later("out_of_range other than error")] = OutOfRange.error
    """An id that is not below num_buckets: an error, the nearest row, or the row of unknown values."""


def _rising(boundaries: list[float]) -> list[float]:
    for before, after in pairwise(boundaries):
        if not before < after:
            raise ValueError(f"must rise; {after:g} follows {before:g}")
    return boundaries


class NumberOptions(Section):
    """How a number becomes a vector: by intervals, or by a small network."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"dense_emb": ("autodis", "mlp")}

    boundaries: Annotated[list[float], AfterValidator(_rising)] = []
    """Where the intervals begin; a number becomes the index of its interval."""

    missing_bucket: bool = False
    """Whether a missing number has an interval of its own, after the last; default_value then counts for nothing."""

    autodis: AutoDisEmbedding | None = None
    mlp: MLPEmbedding | None = None

    @model_validator(mode="after")
    def _missing_numbers_need_intervals(self) -> Self:
        if self.missing_bucket and not self.boundaries:
            problem = "needs boundaries: without intervals there is none for missing numbers"
            raise_problems(self, [Problem(("missing_bucket",), problem)])
        return self


ID_SIZES = ("num_buckets", "hash_bucket_size", "vocab_list", "vocab_dict", "vocab_file", "zch", "dynamicemb")
"""The ways to say how many rows a table of ids has; a feature uses one of them."""
