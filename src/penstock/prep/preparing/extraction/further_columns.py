"""Columns that the first file does not have: left out in silence, they would be lost without anybody knowing."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from penstock.config.errors import DataError
from penstock.prep.sections import SampleSchema
from penstock.readers.origin import ROW_COLUMN

_SCHEMA = "preprocessing.schema"
_KEYS = ("feature_columns", "label_columns", "mask_columns")


def told_by_first(columns: Mapping[str, Any], declared: SampleSchema) -> tuple[str, ...]:
    """The keys of the schema that name no columns, so that all that the first file has were taken.

    Beside a column with all features others are left alone, there as in all files.
    """
    keys = tuple(key for key in _KEYS if not getattr(declared, key))
    return keys[1:] if columns[_KEYS[0]] == [declared.features_name] and _KEYS[0] in keys else keys


def check_further(
    names: Sequence[str], declared: SampleSchema, group_key: str | None, told: Collection[str], file: str
) -> None:
    """Refuse what the first file would have had taken; `declared` has its columns by now."""
    grouped = (columns for columns in declared.feature_groups.values() if not isinstance(columns, int))
    known = {name for columns in (declared.feature_columns, *grouped) for name in columns}
    known |= {*declared.label_columns.values(), *declared.mask_columns.values(), ROW_COLUMN}
    for name in names:
        key, what = _role(name, declared)
        if key in told and name not in known and name != group_key:
            things = "features" if key == _KEYS[0] else "heads"
            raise DataError(
                f"{file}: {what} is not in the first file that has samples; name the {things} in {_SCHEMA}.{key}"
            )


def _role(name: str, declared: SampleSchema) -> tuple[str, str]:
    """The key of the schema that would name a column, and what to call it."""
    for key, prefix in zip(_KEYS[1:], (declared.label_prefix, declared.mask_prefix), strict=True):
        if name.startswith(prefix):
            return key, f"column '{name}', of head '{name.removeprefix(prefix)}',"
    return _KEYS[0], f"column '{name}'"
