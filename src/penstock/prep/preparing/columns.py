"""Columns of Arrow batches -> arrays: which column is what, and its numbers without a step of Python for a value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.prep.preparing.inputs import natural_key
from penstock.prep.sections import SampleSchema
from penstock.readers.origin import ROW_COLUMN

Values = NDArray[Any]

_SCHEMA = "preprocessing.schema"


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns are features, joined in this order, and which belong to heads."""

    features: tuple[str, ...]
    feature_groups: Mapping[str, tuple[str, ...]]
    """Columns that are features too, but in arrays of their own."""
    labels: Mapping[str, str]
    masks: Mapping[str, str]
    group: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """All that are used, each once."""
        group = () if self.group is None else (self.group,)
        grouped = (name for columns in self.feature_groups.values() for name in columns)
        return tuple(
            dict.fromkeys((*self.features, *grouped, *self.labels.values(), *self.masks.values(), *group))
        )


def find_roles(columns: pa.Schema, declared: SampleSchema, group_key: str | None, file: str) -> Roles:
    """What the declared schema and the names of the columns say."""
    names = [name for name in columns.names if name != ROW_COLUMN]
    if group_key is not None:
        _check_present(file, names, group_key, "preprocessing.splits.group_key")
    labels = _heads(
        file, names, declared.label_columns, [*declared.labels], declared.label_prefix, "label_columns"
    )
    masks = _heads(
        file, names, declared.mask_columns, [*declared.masks], declared.mask_prefix, "mask_columns"
    )
    taken = {*labels.values(), *masks.values(), group_key}
    groups = _feature_groups(file, names, declared)
    grouped = [name for chosen in groups.values() for name in chosen]
    if declared.feature_columns:
        chosen = _chosen(file, names, declared.feature_columns, "feature_columns")
        features = tuple(name for name in chosen if name not in grouped)
    elif declared.features_name in names:
        features = (declared.features_name,)
    else:
        others = [name for name in names if name not in taken and name not in grouped]
        features = _others(file, columns, others, may_be_none=bool(grouped))
    both = next((name for name in (*features, *grouped) if name in taken and name != group_key), None)
    if both is not None:
        key = "feature_groups" if both in grouped else "feature_columns"
        raise DataError(
            f"{file}: column '{both}' is a feature and a label or mask; leave it out of {_SCHEMA}.{key}"
        )
    return Roles(features, groups, labels, masks, group_key)


def _feature_groups(file: str, names: Sequence[str], declared: SampleSchema) -> dict[str, tuple[str, ...]]:
    """The columns of the groups that name columns; each belongs to one."""
    found: dict[str, tuple[str, ...]] = {}
    owners: dict[str, str] = {}
    for group, patterns in declared.feature_groups.items():
        if isinstance(patterns, int):
            continue
        found[group] = _chosen(file, names, patterns, "feature_groups")
        for name in found[group]:
            if owners.setdefault(name, group) != group:
                raise DataError(
                    f"{file}: column '{name}' is in two groups of {_SCHEMA}.feature_groups, '{owners[name]}' and "
                    f"'{group}'"
                )
    return found


def _heads(
    file: str, names: Sequence[str], given: Mapping[str, str], heads: Sequence[str], prefix: str, key: str
) -> dict[str, str]:
    if not heads and not given:
        return {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    found = {}
    for head in dict.fromkeys((*heads, *given)):
        possible = (given[head],) if head in given else (f"{prefix}{head}", head)
        column = next((name for name in possible if name in names), possible[-1])
        _check_present(file, names, column, f"{_SCHEMA}.{key}")
        found[head] = column
    return found


def _chosen(file: str, names: Sequence[str], patterns: Sequence[str], key: str) -> tuple[str, ...]:
    chosen: list[str] = []
    for pattern in patterns:
        fitting = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            _check_present(file, names, pattern, f"{_SCHEMA}.{key}")
        chosen += sorted(fitting, key=natural_key)
    return tuple(dict.fromkeys(chosen))


def _others(file: str, columns: pa.Schema, names: Sequence[str], may_be_none: bool) -> tuple[str, ...]:
    for name in names:
        if not _holds_numbers(columns.field(name).type):
            raise DataError(
                f"{file}: column '{name}' holds {columns.field(name).type}, not numbers; name the features in "
                f"{_SCHEMA}.feature_columns"
            )
    if not names and not may_be_none:
        raise DataError(f"{file}: no column is left for features; name them in {_SCHEMA}.feature_columns")
    return tuple(names)


def _check_present(file: str, names: Sequence[str], name: str, key: str) -> None:
    if name not in names:
        raise DataError(f"{file}: has no column '{name}', which {key} names; {hint(name, names)}")


def _holds_numbers(kind: Any) -> bool:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _holds_numbers(kind.value_type)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def batch_arrays(
    batch: pa.RecordBatch, roles: Roles, declared: SampleSchema, file: str, first_row: int
) -> dict[str, Values]:
    """The arrays of a batch, of the columns' own types; groups are not among them."""

    def numbers(name: str) -> Values:
        return column_numbers(batch.column(name), file, name, first_row)

    features = {declared.features_name: roles.features} if roles.features else {}
    features |= {declared.group_array(group): columns for group, columns in roles.feature_groups.items()}
    arrays = {array: _joined([numbers(name) for name in columns]) for array, columns in features.items()}
    arrays |= {f"{declared.label_prefix}{head}": numbers(name) for head, name in roles.labels.items()}
    arrays |= {f"{declared.mask_prefix}{head}": _wide(numbers(name)) for head, name in roles.masks.items()}
    return arrays


def column_numbers(column: Any, file: str, name: str, first_row: int = 0) -> Values:
    """The numbers of a column: one for each row, or a row of them where it holds lists."""
    kind = column.type
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise DataError.at(
            "is null; fill it in, or leave the row out", file=file, row=first_row + row, column=name
        )
    if not _holds_numbers(kind):
        raise DataError.at(f"holds {kind}, not numbers", file=file, column=name)
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_numbers(column, file, name, first_row)
    values: Values = column.to_numpy(zero_copy_only=False)
    return values


def _list_numbers(column: Any, file: str, name: str, first_row: int) -> Values:
    flat = column_numbers(column.flatten(), file, name, first_row)
    if flat.ndim != 1:
        raise DataError.at("holds lists of lists; give one list for a row", file=file, column=name)
    if not len(column):
        width = column.type.list_size if pa.types.is_fixed_size_list(column.type) else 0
        return flat.reshape(0, width)
    lengths = pc.list_value_length(column).to_numpy()
    wrong = lengths != lengths[0]
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError.at(
            f"has {lengths[row]} values but row {first_row} has {lengths[0]}; all must have as many",
            file=file,
            row=first_row + row,
            column=name,
        )
    return flat.reshape(len(column), int(lengths[0]))


def _wide(values: Values) -> Values:
    return values if values.ndim == 2 else values[:, None]


def _joined(parts: Sequence[Values]) -> Values:
    if len(parts) == 1:
        return _wide(parts[0])
    wide = [*_widened(parts)]
    return np.concatenate(wide, axis=1, dtype=np.result_type(*wide), casting="unsafe")


def _widened(parts: Sequence[Values]) -> Iterator[Values]:
    for part in parts:
        yield _wide(part)
