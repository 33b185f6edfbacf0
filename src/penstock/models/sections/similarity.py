"""How two vectors are compared."""

from enum import StrEnum


class Similarity(StrEnum):
    """How two vectors are compared."""

    COSINE = "COSINE"
    INNER_PRODUCT = "INNER_PRODUCT"
    EUCLID = "EUCLID"
