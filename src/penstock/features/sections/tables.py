"""Options of embedding tables: where they live, and how they grow."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from penstock.config.section import Probability, Section


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


class DynamicEmbFrequencyAdmissionStrategy(Section):
    """An id gets a row when it was seen often enough."""

    threshold: PositiveInt
    """How often."""

    initializer_args: DynamicEmbInitializerArgs | None = None
    """The vector of ids that have no row yet."""

    counter_capacity: PositiveInt | None = None
    """Ids that are counted."""

    counter_bucket_capacity: PositiveInt = 1024
    """Ids in one bucket of the counter."""


class DynamicEmbedding(Section):
    """A table that grows with the ids it sees."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "admission_strategy": ("frequency_admission_strategy",)
    }

    max_capacity: PositiveInt
    """Most rows of the table."""

    initializer_args: DynamicEmbInitializerArgs | None = None
    """How a new row starts."""

    eval_initializer_args: DynamicEmbInitializerArgs | None = None
    """The vector of an unknown id in evaluation."""

    score_strategy: str = "STEP"
    """What decides which rows leave: STEP, TIMESTAMP, LFU."""

    cache_load_factor: Probability | None = None
    """Share of the table that is kept on the device."""

    init_capacity_per_rank: PositiveInt | None = None
    """Rows at the start, on each rank."""

    init_table: str | None = None
    """Table of ids and vectors to start from."""

    bucket_capacity: NonNegativeInt | None = None
    """Rows in one bucket of the hash table."""

    frequency_admission_strategy: DynamicEmbFrequencyAdmissionStrategy | None = None
