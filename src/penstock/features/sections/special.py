"""Options of the features about texts, key-value sets, masks, and the user's own."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, NonNegativeInt, PositiveInt

from penstock.config.section import Section, words
from penstock.features.sections.derived import NormalizerOptions
from penstock.features.sections.options import (
    BucketOptions,
    EmbeddingOptions,
    NumberOptions,
    VocabularyOptions,
)


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

    expression: str
    """Where the text comes from: side:column."""

    embedding_dim: PositiveInt
    """Width of a row of the table."""

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

    embedding_dim: PositiveInt
    """Width of a row of the table."""

    value_dim: NonNegativeInt | None = None
    """Number of values in a row; 0 or absent: any."""

    default_value: str = ""
    """Value of a row where nothing is left; empty: such a row has no value."""

    separator: str = "\x1d"
    """Between the values of one row."""

    fg_value_type: str | None = None
    """Type of the values before they become ids."""


class CustomFeature(NormalizerOptions, BucketOptions, VocabularyOptions, NumberOptions, EmbeddingOptions):
    """A feature made by the user's own code."""

    operator_name: str
    """Name of the operator, or the dotted path of a Python class."""

    operator_lib_file: str
    """File with the operator."""

    operator_params: dict[str, Any] = {}
    """What the operator receives."""

    is_op_thread_safe: bool = False
    """Whether several threads may call it at once."""

    expression: list[str] = []
    """Where the raw values come from: side:column."""

    value_dim: NonNegativeInt | None = None
    """Number of values in a row."""

    default_value: str = "0"
    """Value of an empty or missing row."""

    separator: str = "\x1d"
    """Between the values of one row."""
