"""Options that several feature types share; each type is put together from these."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import AfterValidator, NonNegativeInt, PositiveInt

from penstock.config.section import Later, Section, words
from penstock.features.sections.tables import (
    AutoDisEmbedding,
    DynamicEmbedding,
    MLPEmbedding,
    ParameterConstraints,
    ZeroCollisionHash,
)


class EmbeddingOptions(Section):
    """What every feature says: its name, and the table it is looked up in, if any."""

    feature_name: str
    """Name of the feature; groups refer to it, and FG_NONE reads the column of this name."""

    embedding_name: str | None = None
    """Name of the table; features that give the same name share it. Absent: a table of its own."""

    embedding_dim: PositiveInt | None = None
    """Width of a row of the table."""

    pooling: Annotated[str, words("sum", "mean")] = "sum"
    """How the vectors of several values become one: sum or mean."""

    init_fn: str | None = None
    """Initialiser of the table, such as nn.init.normal_,std=0.01."""

    trainable: bool = True
    """Whether the table moves."""

    data_type: Annotated[str, words("FP32", "FP16"), Later("data_type FP16")] = "FP32"
    """Type of the table's numbers: FP32 or FP16."""

    embedding_constraints: Annotated[
        ParameterConstraints | None, Later("embedding_constraints", harmless=True)
    ] = None
    """What the sharding planner may choose from for this table."""

    fg_encoded_default_value: str | None = None
    """Value of an empty or missing row, where columns are features already."""

    use_mask: Annotated[bool | None, Later("use_mask")] = None
    """Whether sample_mask_prob hides values of this feature."""

    stub_type: Annotated[bool, Later("stub_type")] = False
    """The feature only feeds other features."""

    sequence_length: Annotated[PositiveInt | None, Later("a sequence feature")] = None
    """Longest sequence; longer ones are cut."""

    sequence_delim: Annotated[str, Later("a sequence feature")] = ";"
    """Between the steps of a sequence."""

    sequence_fields: Annotated[list[str], Later("a sequence feature")] = []
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

    vocab_file: Annotated[str | None, Later("vocab_file")] = None
    """File of known values, one a line, or with their rows."""

    asset_dir: Annotated[str | None, Later("asset_dir", harmless=True)] = None
    """Folder of vocab_file."""

    zch: Annotated[ZeroCollisionHash | None, Later("zch")] = None
    """Rows that are given to ids as they appear."""

    dynamicemb: Annotated[DynamicEmbedding | None, Later("dynamicemb")] = None
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

    autodis: Annotated[AutoDisEmbedding | None, Later("autodis")] = None
    mlp: Annotated[MLPEmbedding | None, Later("the mlp embedding of a feature")] = None


ID_SIZES = ("num_buckets", "hash_bucket_size", "vocab_list", "vocab_dict", "vocab_file", "zch", "dynamicemb")
"""The ways to say how many rows a table of ids has; a feature uses one of them."""
