"""What the options of a feature say about its embedding table, before anything is built."""

from typing import Any

from penstock.features.sections.basic import IdFeature, RawFeature

WIDTH_STEP = 4
"""The kernel of sharded tables reads rows in steps of so many numbers."""

DEFAULT_ROW, UNKNOWN_ROW, FIRST_VOCABULARY_ROW = 0, 1, 2
"""Rows of a table with a vocabulary, unless default_bucketize_value says which row is for unknown values."""


def has_table(section: Any) -> bool:
    """Whether the ids of a feature are looked up in a table; numbers without boundaries enter as they are."""
    if isinstance(section, RawFeature):
        return bool(section.boundaries)
    return getattr(section, "embedding_dim", None) is not None


def table_rows(section: Any) -> int | None:
    """Rows of a feature's table; None where it has none, or where this version cannot tell."""
    if isinstance(section, RawFeature):
        return len(section.boundaries) + 1 if section.boundaries else None
    if not isinstance(section, IdFeature):
        return None
    if section.vocab_list or section.vocab_dict:
        return _rows_with_vocabulary(section)
    return section.num_buckets or section.hash_bucket_size


def _rows_with_vocabulary(section: IdFeature) -> int:
    """One more than the largest row in use."""
    unknown_row = section.default_bucketize_value
    first_row = FIRST_VOCABULARY_ROW if unknown_row is None else 0
    last_row = max(section.vocab_dict.values(), default=first_row + len(section.vocab_list) - 1)
    return max(last_row, UNKNOWN_ROW if unknown_row is None else unknown_row) + 1
