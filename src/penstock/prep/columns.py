"""Columns of a file -> arrays: which column is what, and its numbers, without a step of Python for a value."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from penstock.config.errors import DataError, hint
from penstock.prep.inputs import natural_key
from penstock.prep.sections import SampleSchema
from penstock.readers.columns import is_list
from penstock.readers.stream import ROW_COLUMN

Values = NDArray[Any]
FEATURE_COLUMNS = "feature_columns"
_SCHEMA = "preprocessing.schema"
_KEYS = (FEATURE_COLUMNS, "label_columns", "mask_columns")
_LEAVE_OUT = "or leave the row out with a function (preprocessing.extract)"
_NOT_FILLED = f"correct it, {_LEAVE_OUT}: only features can be filled"
_FILL = f"set preprocessing.schema.fill_value to the number that stands for it, {_LEAVE_OUT}"
_MAX_CHARACTERS = 40
_MISSING = frozenset(pyarrow.csv.ConvertOptions().null_values or ())
"""What stands for a missing value in a CSV file, nothing at all among them."""


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
    def number_columns(self) -> tuple[str, ...]:
        """All but that of groups, which need not be numbers."""
        return replace(self, group=None).columns

    @property
    def columns(self) -> tuple[str, ...]:
        group = () if self.group is None else (self.group,)
        grouped = (name for columns in self.feature_groups.values() for name in columns)
        return tuple(
            dict.fromkeys((*self.features, *grouped, *self.labels.values(), *self.masks.values(), *group))
        )

    def key_of(self, column: str) -> str:
        """The key of the schema that names columns like one of these."""
        if column in self.labels.values():
            return "label_columns"
        return "mask_columns" if column in self.masks.values() else FEATURE_COLUMNS


def find_roles(
    columns: pa.Schema,
    declared: SampleSchema,
    group_key: str | None,
    file: str,
    error_of: Callable[[str], DataError | None] | None = None,
) -> Roles:
    """What the declared schema and the names say; `error_of` reads a column that its type excludes from features."""
    names = [name for name in columns.names if name != ROW_COLUMN]
    if group_key is not None:
        _check_present(file, names, group_key, "preprocessing.splits.group_key names")
    heads = partial(_heads, file, names)
    labels = heads(declared.label_columns, declared.labels, declared.label_prefix, "label_columns")
    masks = heads(declared.mask_columns, declared.masks, declared.mask_prefix, "mask_columns")
    taken = {*labels.values(), *masks.values(), group_key}
    groups: dict[str, tuple[str, ...]] = {}
    owners: dict[str, str] = {}
    for group, patterns in declared.feature_groups.items():
        if isinstance(patterns, int):
            continue
        groups[group] = _chosen(file, names, patterns, "feature_groups")
        for name in groups[group]:
            if owners.setdefault(name, group) != group:
                raise DataError(
                    f"{file}: column '{name}' is in two groups of {_SCHEMA}.feature_groups, '{owners[name]}' and "
                    f"'{group}'"
                )
    grouped = [*owners]
    if declared.feature_columns:
        chosen = _chosen(file, names, declared.feature_columns, "feature_columns")
        features = tuple(name for name in chosen if name not in grouped)
    elif declared.features_name in names:
        features = (declared.features_name,)
    else:
        prefixes = (
            declared.label_prefix,
            declared.mask_prefix,
        )  # a label is no feature though no head has it
        others = [name for name in names if name not in {*taken, *grouped} and not name.startswith(prefixes)]
        _check_once(file, names, others)
        for name in others:
            if holds_numbers(kind := columns.field(name).type):
                continue
            text = f"holds {kind}, not numbers; name the features in {_SCHEMA}.feature_columns"
            error = DataError(f"{file}: column '{name}' {text}") if error_of is None else error_of(name)
            if error is not None:
                raise error
        if not others and not grouped:
            raise DataError(f"{file}: no column is left for features; name them in {_SCHEMA}.feature_columns")
        features = tuple(others)
    both = next((name for name in (*features, *grouped) if name in taken and name != group_key), None)
    if both is not None:
        key = "feature_groups" if both in grouped else "feature_columns"
        raise DataError(
            f"{file}: column '{both}' is a feature and a label or mask; leave it out of {_SCHEMA}.{key}"
        )
    roles = Roles(features, groups, labels, masks, group_key)
    _check_once(file, names, roles.columns)
    return roles


def _heads(
    file: str, names: Sequence[str], given: Mapping[str, str], heads: Iterable[str], prefix: str, key: str
) -> dict[str, str]:
    """The columns that the run file names; where it names none, all that begin with the prefix."""
    found = {}
    for head in dict.fromkeys((*heads, *given)):
        possible = (given[head],) if head in given else (f"{prefix}{head}", head)
        column = next((name for name in possible if name in names), possible[-1])
        _check_present(file, names, column, f"{_SCHEMA}.{key} names or the first file has")
        found[head] = column
    if given:
        return found
    others = [name for name in names if name.startswith(prefix) and name not in found.values()]
    return found | {name.removeprefix(prefix): name for name in others}


def _chosen(file: str, names: Sequence[str], patterns: Sequence[str], key: str) -> tuple[str, ...]:
    chosen: list[str] = []
    for pattern in patterns:
        fitting = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            _check_present(file, names, pattern, f"{_SCHEMA}.{key} names or the first file has")
        chosen += sorted(fitting, key=natural_key)
    return tuple(dict.fromkeys(chosen))


def _check_present(file: str, names: Sequence[str], name: str, who: str) -> None:
    if name not in names:
        raise DataError(f"{file}: has no column '{name}', which {who}; {hint(name, names)}")


def _check_once(file: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if (num_times := names.count(name)) > 1:
            raise DataError.at(f"stands {num_times} times in this file", file=file, column=name)


def keys_of_first(columns: Mapping[str, Any], declared: SampleSchema) -> tuple[str, ...]:
    """The keys of the schema that name no columns, so that all columns of the first file were taken."""
    keys = tuple(key for key in _KEYS if not getattr(declared, key))
    return keys[1:] if columns[_KEYS[0]] == [declared.features_name] and _KEYS[0] in keys else keys


def check_further(
    names: Sequence[str],
    declared: SampleSchema,
    group_key: str | None,
    from_first: Collection[str],
    file: str,
) -> None:
    """Refuse columns that the first file does not have: left out, they would be lost without anybody knowing."""
    grouped = (columns for columns in declared.feature_groups.values() if not isinstance(columns, int))
    known = {name for columns in (declared.feature_columns, *grouped) for name in columns}
    known |= {*declared.label_columns.values(), *declared.mask_columns.values(), ROW_COLUMN}
    kinds = zip(("", declared.label_prefix, declared.mask_prefix), _KEYS, strict=True)
    by_prefix = sorted(kinds, reverse=True)  # the empty one fits all, and comes last
    for name in (name for name in names if name not in known and name != group_key):
        prefix, key = next((prefix, key) for prefix, key in by_prefix if name.startswith(prefix))
        if key in from_first:
            head = f", of head '{name.removeprefix(prefix)}'," if prefix else ""
            raise DataError(
                f"{file}: column '{name}'{head} is not in the first file that has samples; name the "
                f"{'heads' if prefix else 'features'} in {_SCHEMA}.{key}"
            )


def batch_arrays(
    batch: pa.RecordBatch, roles: Roles, declared: SampleSchema, file: str, first_row: int
) -> dict[str, Values]:
    """The arrays of a batch, of the columns' own types; groups are not among them."""

    def numbers(name: str, is_feature: bool = False) -> Values:
        column = batch.column(name)
        if is_text(column.type):
            error = first_text(column.to_pylist(), file, name, first_row, roles.key_of(name))
            if error is not None:
                raise error
        fill_value = declared.fill_value if is_feature else None
        return column_numbers(column, file, name, first_row, is_feature=is_feature, fill_value=fill_value)

    features = {declared.features_name: roles.features} if roles.features else {}
    features |= {declared.group_array(group): columns for group, columns in roles.feature_groups.items()}
    arrays = {
        array: side_by_side([numbers(name, is_feature=True) for name in columns])
        for array, columns in features.items()
    }
    arrays |= {f"{declared.label_prefix}{head}": numbers(name) for head, name in roles.labels.items()}
    arrays |= {f"{declared.mask_prefix}{head}": _wide(numbers(name)) for head, name in roles.masks.items()}
    return arrays


def holds_numbers(kind: Any) -> bool:
    if is_list(kind):
        return holds_numbers(kind.value_type)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def column_numbers(
    column: Any,
    file: str,
    name: str,
    first_row: int = 0,
    *,
    is_feature: bool = False,
    fill_value: float | None = None,
) -> Values:
    """One number for each row, or a row of them where the column holds lists; `fill_value` stands for a missing one."""
    kind, holds_lists = column.type, is_list(column.type)
    cure = _FILL if is_feature else _NOT_FILLED
    if column.null_count and (holds_lists or fill_value is None):
        row = first_row + pc.index(column.is_null(), True).as_py()
        cure = "a list cannot be filled" if holds_lists and is_feature else cure
        raise DataError.at(f"is null; {cure}", file=file, row=row, column=name)
    values = column.flatten() if holds_lists else column
    if not (holds_numbers(kind) or (pa.types.is_null(values.type) and fill_value is not None)):
        raise DataError.at(f"holds {kind}, not numbers", file=file, column=name)
    if is_list(values.type):
        raise DataError.at("holds lists of lists; give one list for a row", file=file, column=name)
    if values.null_count and fill_value is None:
        parent = pc.list_parent_indices(column)[pc.index(values.is_null(), True).as_py()].as_py()
        raise DataError.at(
            f"holds a null in its list; {cure}", file=file, row=first_row + parent, column=name
        )
    if values.null_count:
        values = values.cast(pa.float64(), safe=False).fill_null(fill_value)
    flat: Values = values.to_numpy(zero_copy_only=False)
    if not holds_lists:
        return flat
    if not len(column):
        return flat.reshape(0, kind.list_size if pa.types.is_fixed_size_list(kind) else 0)
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


def side_by_side(columns: Sequence[Values]) -> Values:
    """The numbers of several columns as the rows of one array, of a type that holds them all."""
    parts = [_wide(column) for column in columns]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=1, dtype=np.result_type(*parts), casting="unsafe")


def first_text(
    values: Iterable[Any], file: str, column: str, first_row: int = 0, key: str = FEATURE_COLUMNS
) -> DataError | None:
    """The error of the first value that is no number; None where all are, or are missing. `key` names such columns."""
    for row, value in enumerate(values, first_row):
        if value is not None and not _is_number(value):
            text = str(value)
            shown = text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
            cure = f"take another column: {_SCHEMA}.{key} names those of the heads"
            if key == FEATURE_COLUMNS:
                cure = f"do without the column: {_SCHEMA}.{key} names the features"
            problem = f"is no number; correct it, or {cure}"
            return DataError.at(problem, file=file, row=row, column=column, value=shown)
    return None


def _is_number(value: Any) -> bool:
    try:
        if isinstance(value, str):
            return value in _MISSING or pa.scalar(value).cast(pa.float64()).is_valid
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def text_numbers(values: Any) -> Any:
    """A column of strings as numbers, null where they are missing; ArrowInvalid where one is no number."""
    is_missing = pc.is_in(values, value_set=pa.array(sorted(_MISSING), values.type))
    return pc.if_else(is_missing, pa.scalar(None, values.type), values).cast(pa.float64())
