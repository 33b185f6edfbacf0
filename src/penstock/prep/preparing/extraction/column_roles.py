"""Which column of a file is what: features, labels, masks, groups, by the declared schema and by names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.prep.preparing.extraction.column_numbers import (
    Values,
    column_numbers,
    holds_numbers,
    side_by_side,
    wide,
    with_fill_value,
)
from penstock.prep.preparing.extraction.text_values import FEATURE_COLUMNS, is_text, text_in
from penstock.prep.preparing.inputs import natural_key
from penstock.prep.sections import SampleSchema
from penstock.readers.origin import ROW_COLUMN

_SCHEMA = "preprocessing.schema"


class NoNumbers(DataError):
    """A column that should be a feature holds something else."""

    def __init__(self, column: str, text: str) -> None:
        super().__init__(text)
        self.column = column

    def __reduce__(self) -> "tuple[type[NoNumbers], tuple[str, str]]":
        return type(self), (self.column, str(self))


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

    def key_of(self, column: str) -> str:
        """The key of the schema that names columns like one of these."""
        if column in self.labels.values():
            return "label_columns"
        return "mask_columns" if column in self.masks.values() else FEATURE_COLUMNS

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
        _check_present(file, names, group_key, "preprocessing.splits.group_key names")
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
        prefixes = (
            declared.label_prefix,
            declared.mask_prefix,
        )  # a label is no feature though no head has it
        others = [name for name in names if name not in {*taken, *grouped} and not name.startswith(prefixes)]
        _check_once(file, names, others)
        features = _others(file, columns, others, may_be_none=bool(grouped))
    both = next((name for name in (*features, *grouped) if name in taken and name != group_key), None)
    if both is not None:
        key = "feature_groups" if both in grouped else "feature_columns"
        raise DataError(
            f"{file}: column '{both}' is a feature and a label or mask; leave it out of {_SCHEMA}.{key}"
        )
    roles = Roles(features, groups, labels, masks, group_key)
    _check_once(file, names, roles.columns)
    return roles


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
    """The columns of heads: those that the run file names, and where it names no columns, all that the prefix tells."""
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


def _others(file: str, columns: pa.Schema, names: Sequence[str], may_be_none: bool) -> tuple[str, ...]:
    for name in names:
        if not holds_numbers(columns.field(name).type):
            raise NoNumbers(
                name,
                f"{file}: column '{name}' holds {columns.field(name).type}, not numbers; name the features in "
                f"{_SCHEMA}.feature_columns",
            )
    if not names and not may_be_none:
        raise DataError(f"{file}: no column is left for features; name them in {_SCHEMA}.feature_columns")
    return tuple(names)


def _check_present(file: str, names: Sequence[str], name: str, who: str) -> None:
    if name not in names:
        raise DataError(f"{file}: has no column '{name}', which {who}; {hint(name, names)}")


def _check_once(file: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if (num_times := names.count(name)) > 1:
            raise DataError.at(f"stands {num_times} times in this file", file=file, column=name)


def batch_arrays(
    batch: pa.RecordBatch, roles: Roles, declared: SampleSchema, file: str, first_row: int
) -> dict[str, Values]:
    """The arrays of a batch, of the columns' own types; groups are not among them."""

    def numbers(name: str, filled: bool = False) -> Values:
        column = batch.column(name)
        if is_text(column.type):
            error = text_in(column.to_pylist(), file, name, first_row, roles.key_of(name))
            if error is not None:
                raise error
        if filled:
            column = with_fill_value(column, declared.fill_value, file, name, first_row)
        return column_numbers(column, file, name, first_row)

    features = {declared.features_name: roles.features} if roles.features else {}
    features |= {declared.group_array(group): columns for group, columns in roles.feature_groups.items()}
    arrays = {
        array: side_by_side([numbers(name, filled=True) for name in columns])
        for array, columns in features.items()
    }
    arrays |= {f"{declared.label_prefix}{head}": numbers(name) for head, name in roles.labels.items()}
    arrays |= {f"{declared.mask_prefix}{head}": wide(numbers(name)) for head, name in roles.masks.items()}
    return arrays
