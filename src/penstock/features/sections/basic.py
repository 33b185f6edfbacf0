"""Options of the features that read one column: ids and numbers."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from penstock.config.section import Later
from penstock.features.sections.options import (
    ID_SIZES,
    BucketOptions,
    EmbeddingOptions,
    NumberOptions,
    VocabularyOptions,
)


class IdFeature(BucketOptions, VocabularyOptions, EmbeddingOptions):
    """Categorical ids: one, several, or several with weights."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"id_size": ID_SIZES}
    required_one_of: ClassVar[tuple[str, ...]] = ("id_size",)

    expression: str
    """Where the raw value comes from: side:column, such as user:age or item:brand."""

    embedding_dim: PositiveInt
    """Width of a row of the table."""

    default_value: str = ""
    """Value of an empty or missing row; empty: such a row has no value."""

    separator: str = "\x1d"
    """Between the values of one row."""

    weighted: bool = False
    """Values come with weights: id:weight."""

    value_dim: NonNegativeInt | None = None
    """Number of values in a row; 0 or absent: any."""

    fg_value_type: Annotated[str | None, Later("fg_value_type", harmless=True)] = None
    """Type of the values before they become ids."""


class RawFeature(NumberOptions, EmbeddingOptions):
    """Numbers or vectors; with boundaries they become ids."""

    expression: str
    """Where the raw value comes from: side:column, such as user:age or item:price."""

    default_value: str = "0"
    """Value of an empty or missing row."""

    separator: str = "\x1d"
    """Between the values of one row."""

    value_dim: PositiveInt = 1
    """Number of values in a row."""

    normalizer: str | None = None
    """Such as method=log10,threshold=1e-10,default=-10, method=zscore, method=minmax or method=expression."""

    @model_validator(mode="after")
    def _table_has_a_width(self) -> Self:
        if self.boundaries and self.embedding_dim is None:
            raise ValueError("boundaries make ids, which need embedding_dim")
        return self
