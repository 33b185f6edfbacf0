"""Options of the features that are made of several columns, or looked up in maps."""

from typing import Annotated

from pydantic import NonNegativeInt

from penstock.config.section import Section, words
from penstock.features.sections.options import (
    BucketOptions,
    EmbeddingOptions,
    NumberOptions,
    VocabularyOptions,
)

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

    default_value: str = ""
    """Value of an empty or missing row; empty: such a row has no value."""

    separator: str = "\x1d"
    """Between the values of one row."""


class CombineFeature(NormalizerOptions, BucketOptions, NumberOptions, EmbeddingOptions):
    """Many values of a row, made one."""

    expression: str
    """Where the raw values come from: side:column."""

    value_map: dict[str, float] = {}
    """Numbers that texts stand for."""

    combiner: Combiner = "sum"
    """How values become one."""

    default_value: str = ""
    """Value of an empty or missing row."""

    separator: str = "\x1d"
    """Between the values of one row."""


class LookupFeature(NormalizerOptions, BucketOptions, VocabularyOptions, NumberOptions, EmbeddingOptions):
    """The value of a key in a map column."""

    map: str
    """Where the map comes from: side:column."""

    key: str
    """Where the key comes from: side:column."""

    combiner: Combiner = "sum"
    """How the values of several keys become one."""

    need_discrete: bool = False
    """The value is an id, not a number."""

    need_key: bool = False
    """The id is made of key and value."""

    value_dim: NonNegativeInt | None = None
    """Number of values in a row."""

    value_separator: str = ","
    """Between the numbers of one value of the map."""

    default_value: str = "0"
    """Value of a key that is not in the map."""

    separator: str = "\x1d"
    """Between the entries of the map."""

    fg_value_type: str | None = None
    """Type of the values before they become ids."""


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

    value_dim: NonNegativeInt | None = None
    """Number of values in a row."""

    default_value: str = "0"
    """Value of keys that are not in the map."""

    separator: str = "\x1d"
    """Between the values of one row."""

    fg_value_type: str | None = None
    """Type of the values before they become ids."""


class ExprFeature(NumberOptions, EmbeddingOptions):
    """Arithmetic over columns."""

    expression: str
    """The formula, over the names of the variables."""

    variables: list[str] = []
    """Where the variables come from: side:column."""

    fill_missing: float | None = None
    """Number that stands for a missing variable; absent: the result is missing."""

    value_dim: NonNegativeInt = 0
    """Number of values in a row; 0: any."""

    default_value: str = "0"
    """Value of a row without a result."""

    separator: str = "\x1d"
    """Between the values of one row."""
