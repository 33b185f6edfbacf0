"""Options of every type of feature, and what they say about its embedding table."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from penstock.config.section import Ignored, Later, Section, words
from penstock.features.sections.tables import (
    ID_SIZES,
    AutoDisEmbedding,
    BucketOptions,
    EmbeddingOptions,
    MLPEmbedding,
    NumberOptions,
    VocabularyOptions,
)

# Options of several types; a field that is declared again in a class below keeps its docstring.
Expression = Annotated[
    str,
    Field(
        description="Column of the raw values, such as price or, with its side, item:price; absent: called like the "
        "feature."
    ),
]
Separator = Annotated[str, Field(description="Between the values of one row.")]
DefaultValue = Annotated[str, Field(description="Value of an empty or missing row.")]
DefaultOrNone = Annotated[
    str, Field(description="Value of an empty or missing row; empty: such a row has no value.")
]
ValueDim = Annotated[NonNegativeInt | None, Field(description="Number of values in a row.")]
AnyValueDim = Annotated[
    NonNegativeInt | None, Field(description="Number of values in a row; 0 or absent: any.")
]
ValueType = Annotated[
    str | None,
    Field(description="Type of the values before they become ids."),
    Later("fg_value_type", harmless=True),
]


class IdFeature(BucketOptions, VocabularyOptions, EmbeddingOptions):
    """Categorical ids: one, several, or several with weights."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"id_size": ID_SIZES}
    required_one_of: ClassVar[tuple[str, ...]] = ("id_size",)

    expression: Expression = ""
    default_value: DefaultOrNone = ""
    separator: Separator = "\x1d"
    weighted: bool = False
    """Values come with weights: id:weight."""

    value_dim: AnyValueDim = None
    fg_value_type: Annotated[str | None, Later("fg_value_type", harmless=True)] = None
    """Type of the values before they become ids."""


class RawFeature(NumberOptions, EmbeddingOptions):
    """Numbers or vectors; with boundaries they become ids."""

    expression: Expression = ""
    default_value: str = "0"
    """Value of an empty or missing row; mean: that of the training data, which `penstock vocab --write` puts there."""

    separator: Separator = "\x1d"
    value_dim: PositiveInt = 1
    """Number of values in a row."""

    normalizer: str | None = None
    """Such as method=log10,threshold=1e-10,default=-10, method=zscore, method=minmax or method=expression."""


Combiner = Annotated[str, words("sum", "mean", "avg", "min", "max", "count")]


class NormalizerOptions(Section):
    """Numbers that are brought to a scale."""

    normalizer: str | None = None
    """Such as method=log10,threshold=1e-10,default=-10, method=zscore, method=minmax or method=expression."""


class ComboFeature(VocabularyOptions, EmbeddingOptions):
    """Ids of several inputs, crossed."""

    expression: list[str] = []
    """Where the raw values come from: side:column, one for each input."""

    value_dim: NonNegativeInt = 0
    """Number of values in a row; 0: any."""

    default_value: DefaultOrNone = ""
    separator: Separator = "\x1d"


class CombineFeature(NormalizerOptions, BucketOptions, NumberOptions, EmbeddingOptions):
    """Many values of a row, made one."""

    expression: Expression = ""
    value_map: dict[str, float] = {}
    """Numbers that texts stand for."""

    combiner: Combiner = "sum"
    """How values become one."""

    default_value: DefaultValue = ""
    separator: Separator = "\x1d"


class LookupFeature(NormalizerOptions, BucketOptions, VocabularyOptions, NumberOptions, EmbeddingOptions):
    """The value of a key in a map column."""

    map: str
    """Where the map comes from: side:column."""

    key: str
    """Where the key comes from: side:column."""

    combiner: Annotated[str, words("", "sum", "mean", "avg", "min", "max", "count")] = "sum"
    """How the numbers of several keys become one; empty: they do not."""

    need_discrete: bool = False
    """The value is an id, not a number."""

    need_key: bool = False
    """The id is made of key and value."""

    value_dim: ValueDim = None
    value_separator: str = ","
    """Between the numbers of one value of the map."""

    default_value: str = "0"
    """Value of a key that is not in the map."""

    separator: str = "\x1d"
    """Between the entries of the map."""

    fg_value_type: ValueType = None


class MatchFeature(NormalizerOptions, BucketOptions, VocabularyOptions, NumberOptions, EmbeddingOptions):
    """The value of two keys in a map of maps."""

    nested_map: str
    """Where the map of maps comes from: side:column."""

    pkey: str
    """Where the first key comes from: side:column, or ALL."""

    skey: str
    """Where the second key comes from: side:column, or ALL."""

    need_discrete: bool = False
    """The value is an id, not a number."""

    show_pkey: bool = False
    """The first key is part of the id."""

    show_skey: bool = False
    """The second key is part of the id."""

    value_dim: ValueDim = None
    default_value: str = "0"
    """Value of keys that are not in the map."""

    separator: Separator = "\x1d"
    fg_value_type: ValueType = None


class ExprFeature(NumberOptions, EmbeddingOptions):
    """Arithmetic over columns."""

    expression: str
    """The formula, over the names of the variables, such as hour(visited) + 24 * weekday(visited)."""

    variables: list[str] = []
    """The columns that the formula names, such as price or item:price; absent: every name in it is a column."""

    fill_missing: float | None = None
    """Number that stands for a missing variable; absent: the result is missing."""

    value_dim: NonNegativeInt = 0
    """Number of values in a row; 0: any."""

    default_value: str = "0"
    """Value of a row without a result."""

    separator: Separator = "\x1d"


class TextNormalizeOption(StrEnum):
    """One step of cleaning a text."""

    TEXT_LOWER2UPPER = "TEXT_LOWER2UPPER"
    TEXT_UPPER2LOWER = "TEXT_UPPER2LOWER"
    TEXT_SBC2DBC = "TEXT_SBC2DBC"
    TEXT_CHT2CHS = "TEXT_CHT2CHS"
    TEXT_FILTER = "TEXT_FILTER"
    TEXT_SPLITCHRS = "TEXT_SPLITCHRS"
    TEXT_REMOVE_SPACE = "TEXT_REMOVE_SPACE"


class TextNormalizer(Section):
    """How a text is cleaned before it is cut into tokens."""

    max_length: PositiveInt | None = None
    """Characters that are looked at."""

    stop_char_file: str | None = None
    """File of characters that are left out."""

    norm_options: list[TextNormalizeOption] = []
    """The steps."""


class TokenizeFeature(EmbeddingOptions):
    """A text as ids of its tokens."""

    expression: Expression = ""
    vocab_file: str
    """The tokenizer's vocabulary or model."""

    asset_dir: str | None = None
    """Folder of vocab_file."""

    tokenizer_type: Annotated[str, words("bpe", "sentencepiece")] = "bpe"
    """bpe or sentencepiece."""

    text_normalizer: TextNormalizer | None = None
    """How the text is cleaned first."""

    default_value: str = ""
    """Text of an empty or missing row."""

    tokens_as_sequence: bool = False
    """Tokens are steps of a sequence, not pooled."""


class OverlapFeature(NormalizerOptions, NumberOptions, EmbeddingOptions):
    """How much two texts have in common."""

    query: str
    """Where the first text comes from: side:column."""

    title: str
    """Where the second text comes from: side:column."""

    method: Annotated[str, words("query_common_ratio", "title_common_ratio", "is_contain", "is_equal")]
    """query_common_ratio, title_common_ratio, is_contain or is_equal."""

    separator: str = "\x1d"
    """Between the words of a text."""


def _as_text(delimiter: str | float | None) -> str | None:
    """Old files declare kv_delimiter as a number."""
    return f"{delimiter:g}" if isinstance(delimiter, float | int) else delimiter


class KvDotProduct(NormalizerOptions, NumberOptions, EmbeddingOptions):
    """Dot product of two sets of key:value."""

    query: str
    """Where the first set comes from: side:column."""

    document: str
    """Where the second set comes from: side:column."""

    kv_delimiter: Annotated[str | float | None, AfterValidator(_as_text)] = None
    """Between a key and its value; absent: ':'. A number, as old files have it, is read as its text."""

    default_value: str = "0"
    """Value of a row where one set is missing."""

    separator: str = "\x1d"
    """Between the entries of a set."""


class BoolMaskFeature(BucketOptions, VocabularyOptions, EmbeddingOptions):
    """The values of a row where a mask is true."""

    expression: list[str] = []
    """Where values and mask come from: side:column, values first."""

    value_dim: AnyValueDim = None
    default_value: str = ""
    """Value of a row where nothing is left; empty: such a row has no value."""

    separator: Separator = "\x1d"
    fg_value_type: ValueType = None


class CustomFeature(NormalizerOptions, BucketOptions, VocabularyOptions, NumberOptions, EmbeddingOptions):
    """A feature made by the user's own code."""

    operator_name: str
    """Where its class is defined, as "package.module:Class", or an entry point's name; EditDistance is built in."""

    operator_lib_file: Annotated[str, Ignored("operators are Python classes")] = ""
    """File with the operator."""

    operator_params: dict[str, Any] = {}
    """What the class is made with: its keyword arguments."""

    is_op_thread_safe: bool = False
    """Whether several threads may call it at once."""

    expression: list[str] = []
    """Where the raw values come from: side:column."""

    value_dim: ValueDim = None
    default_value: DefaultValue = "0"
    separator: Separator = "\x1d"


WIDTH_STEP = 4
"""The kernel of tables reads rows in steps of so many numbers; narrower ones are stored with zeros behind them."""

DEFAULT_ROW, UNKNOWN_ROW, FIRST_VOCABULARY_ROW = 0, 1, 2
"""Rows of a table with a vocabulary, unless default_bucketize_value says which row is for unknown values."""


AutoDisOrMlp = AutoDisEmbedding | MLPEmbedding
"""How a number becomes a vector without intervals."""


def has_table(section: Any) -> bool:
    """Whether the ids of a feature are looked up in a table; numbers without boundaries enter as they are."""
    if isinstance(section, IdFeature | TokenizeFeature | BoolMaskFeature):
        return True
    return bool(getattr(section, "boundaries", None)) or any(
        getattr(section, size, None) for size in ID_SIZES
    )


def has_vector(section: Any) -> bool:
    """Whether a feature is embedded: by a table, or by a network of its numbers."""
    return has_table(section) or any(getattr(section, key, None) is not None for key in ("autodis", "mlp"))


def table_rows(section: Any) -> int | None:
    """Rows of a feature's table; None where it has none, or where only a file tells (vocab_file, tokens)."""
    if boundaries := getattr(section, "boundaries", None):
        return len(boundaries) + 1 + int(section.missing_bucket)
    if growing := getattr(section, "zch", None):
        return int(growing.zch_size)
    if growing := getattr(section, "dynamicemb", None):
        return int(growing.max_capacity)
    vocab_list, vocab_dict = getattr(section, "vocab_list", []), getattr(section, "vocab_dict", {})
    if not vocab_list and not vocab_dict:
        return getattr(section, "num_buckets", None) or getattr(section, "hash_bucket_size", None)
    unknown_row = section.default_bucketize_value
    first_row = FIRST_VOCABULARY_ROW if unknown_row is None else 0
    last_row = max(vocab_dict.values(), default=first_row + len(vocab_list) - 1)
    return int(max(last_row, UNKNOWN_ROW if unknown_row is None else unknown_row)) + 1
