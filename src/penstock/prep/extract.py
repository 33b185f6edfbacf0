"""A raw file -> samples or arrays: by the user's function, or column by column through the readers."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, DataError, nearest_name
from penstock.config.registry import Registry
from penstock.config.sizes import MIB
from penstock.prep.columns import (
    FEATURE_COLUMNS,
    Roles,
    batch_arrays,
    check_further,
    find_roles,
    first_text,
    is_text,
    keys_of_first,
    text_numbers,
)
from penstock.prep.sections import SampleSchema
from penstock.prep.split_groups import groups_of, sample_group
from penstock.readers.files import DataFile
from penstock.readers.samples import Sample
from penstock.readers.scan import BlockStream, ReadRequest, ScannedFiles, dataset_type_of, scan_files
from penstock.readers.sections import ReadingSection
from penstock.readers.store_schema import FEATURES, LABELS, MASKS, ArrayNames
from penstock.runtime.budget import Share
from penstock.runtime.checksums import file_checksum

EXTRACT = "preprocessing.extract"
Extract = Callable[[str], Iterable[Any]]
"""Called with the path of a file; gives samples, dicts of whole arrays, or Arrow record batches."""
_READER_BYTES = 64 * MIB
"""What reading columns may hold; a file that needs more is read with as little as it needs."""
_GROUPS = "preprocessing.schema.feature_groups"
_COLUMNS = pa.RecordBatch | pa.Table


@dataclass(frozen=True, slots=True)
class Arrays:
    values: Mapping[str, NDArray[Any]]

    @property
    def num_samples(self) -> int:
        return len(next(iter(self.values.values()), ()))


Item = Sample | Arrays


@dataclass(frozen=True, slots=True)
class Extraction:
    function: str | None
    """The user's, as "package.module:function"; None: columns as they are."""
    declared: SampleSchema
    reading: ReadingSection
    group_key: str | None = None
    """What tells the group of a sample, where splits keep groups together."""
    from_first: tuple[str, ...] = ()
    """Keys of the schema that the columns of the first file have filled; others must have no further ones."""

    @property
    def names(self) -> ArrayNames:
        return ArrayNames(self.declared.features_name, self.declared.label_prefix, self.declared.mask_prefix)

    def first(self, file: DataFile) -> "tuple[Extraction, Item] | None":
        """The first that a file gives, and how all files are extracted then: where it has columns, they have these."""
        extraction = self
        if self.function is None:
            found = self._scan(file)
            if not found.num_rows:  # nobody knows the types of its columns
                return None
            extraction = self._with_roles(self._file_roles(found.columns, file))
        for given in extraction._given(file):
            if self.function is not None and isinstance(given, _COLUMNS):
                roles = find_roles(given.schema, self.declared, self.group_key, file.path)
                extraction = self._with_roles(roles)
            for item in extraction._understood(given, file.path, 0):
                if not isinstance(item, Arrays) or item.num_samples:
                    return extraction, item
        return None

    def items(self, file: DataFile) -> Iterator[Item]:
        number = 0
        for given in self._given(file):
            for item in self._understood(given, file.path, number):
                yield item
                number += item.num_samples if isinstance(item, Arrays) else 1

    def with_columns(self, columns: Mapping[str, Any]) -> "Extraction":
        """With the columns of the first file; a function that gives samples has none, and they are as declared."""
        declared = self.declared
        has_columns = self.function is None or any(columns[key] != getattr(declared, key) for key in columns)
        keys = keys_of_first(columns, declared) if has_columns else ()
        return replace(self, declared=declared.model_copy(update=dict(columns)), from_first=keys)

    def _with_roles(self, roles: Roles) -> "Extraction":
        """These columns, in this order, are those of all files, which may have them in another."""
        named_groups = {group: list(names) for group, names in roles.feature_groups.items()}
        return self.with_columns(
            {
                "feature_columns": list(roles.features),
                "feature_groups": {**self.declared.feature_groups, **named_groups},
                "label_columns": dict(roles.labels),
                "mask_columns": dict(roles.masks),
            }
        )

    def _given(self, file: DataFile) -> Iterable[Any]:
        if self.function is None:
            return self._read_columns(file)
        given: Any = load_extract(self.function)(file.path)
        if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | _COLUMNS):
            return given
        is_one = isinstance(given, Mapping | _COLUMNS)
        advice = "yield it in place of return" if is_one else "it should give samples, one after the other"
        raise DataError(f"{file.path}: '{self.function}' gave {_kind(given)}; {advice}")

    def _read_columns(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        found = self._scan(file)
        if not found.num_rows:
            return
        columns = found.columns
        roles = self._file_roles(columns, file)
        check_further(columns.names, self.declared, self.group_key, self.from_first, file.path)
        texts = [name for name in roles.number_columns if is_text(columns.field(name).type)]
        for name in texts:
            if (error := self._text_in_file(file, name, roles.key_of(name))) is not None:
                raise error
        found = self._scan(file, roles.columns)
        share = Share("the reader", max(found.sizes.min_bytes, min(found.sizes.ample_bytes, _READER_BYTES)))
        with closing(iter(BlockStream(found, share))) as batches:  # type: ignore[type-var]
            for batch in batches:
                for name in texts:
                    index = batch.schema.get_field_index(name)
                    batch = batch.set_column(index, name, text_numbers(batch.column(name)))  # noqa: PLW2901
                yield batch

    def _scan(self, file: DataFile, columns: Sequence[str] | None = None) -> ScannedFiles:
        """A group of a CSV file is the string that is written there, also in a column of digits."""
        texts = [self.group_key] if self.group_key is not None and self._is_csv(file) else []
        return scan_files(self.reading, [file], ReadRequest(columns, texts))

    def _is_csv(self, file: DataFile) -> bool:
        return dataset_type_of(self.reading, [file]) == "CsvDataset"

    def _file_roles(self, columns: pa.Schema, file: DataFile) -> Roles:
        """A CSV column is text also where no sampled row has a value: it is a feature if all in it are numbers."""
        return find_roles(
            columns, self.declared, self.group_key, file.path, partial(self._text_in_file, file)
        )

    def _text_in_file(self, file: DataFile, column: str, key: str = FEATURE_COLUMNS) -> DataError | None:
        """The error of the first string that is no number; a CSV column may have numbers that were not sampled."""
        found = scan_files(self.reading, [file], ReadRequest((column,)))
        row, has_numbers = 0, False
        with closing(iter(BlockStream(found, Share("the reader", found.sizes.min_bytes)))) as batches:  # type: ignore[type-var]
            for batch in batches:
                values: Any = batch.column(column)
                try:
                    numbers = text_numbers(values) if is_text(values.type) else None
                except pa.ArrowInvalid:
                    numbers = None
                if numbers is None:
                    error = first_text(values.to_pylist(), file.path, column, row, key)
                    if error is not None:
                        return error
                has_numbers |= (values if numbers is None else numbers).null_count < len(values)
                row += batch.num_rows
        if not has_numbers or (key == FEATURE_COLUMNS and self._is_csv(file)):
            return None
        problem = "holds numbers written as text; declare its type in data_config.input_fields"
        return DataError.at(problem, file=file.path, column=column)

    def _understood(self, given: Any, file: str, number: int) -> Iterator[Item]:
        names = self.names
        if isinstance(given, pa.RecordBatch):
            yield self._of_batch(given, file, number)
        elif isinstance(given, pa.Table):
            for batch in given.to_batches():
                yield self._of_batch(batch, file, number)
                number += batch.num_rows
        elif not isinstance(given, Mapping):
            raise DataError(
                f"{file}: sample {number}: '{self.function}' gave {_kind(given)}; it should give dicts of samples or "
                "of whole arrays, or Arrow record batches"
            )
        elif FEATURES in given and getattr(given[FEATURES], "ndim", 1) < 2:
            sample = split_features(given, FEATURES, self.declared, f"{file}: sample {number}", axis=0)
            if self.group_key is not None:
                sample = {**sample, names.groups: sample_group(sample, self.group_key, file, number)}
            yield sample
        elif any(
            str(name).startswith((FEATURES, names.features, names.labels, names.masks)) for name in given
        ):
            yield self._of_arrays(given, file, number)
        else:
            keys = [str(name) for name in given]
            near = nearest_name(FEATURES, keys)
            question = "" if near is None else f"; is it '{near}'?"
            there = ", ".join(map(repr, keys)) or "nothing"
            raise DataError(f"{file}: sample {number}: has no '{FEATURES}' but {there}{question}")

    def _of_batch(self, batch: pa.RecordBatch, file: str, number: int) -> Arrays:
        declared = self.declared
        roles = find_roles(batch.schema, declared, self.group_key, file)
        check_further(batch.schema.names, declared, self.group_key, self.from_first, file)
        is_named = declared.feature_columns or declared.feature_groups
        if not is_named and roles.features != (declared.features_name,):
            # Features are never taken by the position of their columns, which may be another in every file.
            raise DataError(
                f"{file}: gives columns, but the first sample was a dict, so that nobody knows which are features in "
                "which order; name them in preprocessing.schema.feature_columns"
            )
        arrays = batch_arrays(batch, roles, declared, file, number)
        arrays = split_features(arrays, declared.features_name, declared, file, axis=1)
        if self.group_key is not None:
            groups: Any = batch.column(self.group_key)
            if self.function is None and is_text(groups.type):  # an empty cell tells no group
                groups = pc.if_else(pc.equal(groups, pa.scalar("", groups.type)), None, groups)
            arrays[self.names.groups] = groups_of(groups, self.group_key, file, number)
        return Arrays(arrays)

    def _of_arrays(self, given: Mapping[str, Any], file: str, number: int) -> Arrays:
        framed = next((name for name, values in given.items() if hasattr(values, "columns")), None)
        if framed is not None:
            raise DataError(
                f"{file}: sample {number}: '{framed}' is {_kind(given[framed])}, whose columns would be taken by their "
                "place; choose them by name, as in frame[names].to_numpy(), or yield a pyarrow.Table instead"
            )
        names = self.names
        arrays = {name: np.asarray(values) for name, values in given.items() if name not in (LABELS, MASKS)}
        if FEATURES in arrays:
            arrays[names.features] = arrays.pop(FEATURES)
        for part, name_of in ((LABELS, names.label), (MASKS, names.mask)):
            arrays |= {name_of(head): np.asarray(values) for head, values in given.get(part, {}).items()}
        if not arrays or any(array.ndim == 0 for array in arrays.values()):
            name = next((name for name, array in arrays.items() if array.ndim == 0), FEATURES)
            raise DataError(f"{file}: '{name}' is no array with samples along its first axis")
        arrays = split_features(arrays, names.features, self.declared, file, axis=1)
        if self.group_key is not None:
            arrays.pop(self.group_key, None)
            arrays[names.groups] = groups_of(given.get(self.group_key), self.group_key, file, number)
        return Arrays(arrays)


def _kind(given: Any) -> str:
    return f"an object of type {type(given).__name__}"


def split_features(
    given: Mapping[str, Any], key: str, declared: SampleSchema, where: str, axis: int
) -> dict[str, Any]:
    """Cut groups of features out of those under `key`, along `axis`: 0 in a sample, 1 in whole arrays."""
    features = given.get(key)
    if not declared.feature_groups or features is None or (axis and features.ndim != 2):
        return dict(given)

    def cut(start: int, end: int | None = None) -> Any:
        return features[:, start:end] if axis else features[start:end]

    parts: dict[str, Any] = {}
    start = 0
    for group, size in declared.feature_groups.items():
        name = declared.group_array(group)
        if name in given:
            continue
        if not isinstance(size, int):
            raise DataError(
                f"{where}: {_GROUPS}: '{group}' names columns, but there are none here; say how many features it has"
            )
        parts[name] = cut(start, start + size)
        start += size
    num_features = features.shape[1] if axis else len(features)
    if num_features < start:
        raise DataError(f"{where}: {FEATURES}: has {num_features}, but the groups of {_GROUPS} are {start}")
    rest = {key: cut(start)} if num_features > start or not parts else {}
    return rest | parts | {name: values for name, values in given.items() if name != key}


def load_extract(name: str) -> Extract:
    if ":" not in name:
        raise ConfigError.at(EXTRACT, f"is '{name}'; write it as \"package.module:function\"")
    registry: Registry[Any] = Registry("extract", {})
    try:
        function = registry.get(name)
    except ConfigError as error:
        hint = "; is its folder on PYTHONPATH?" if "there is no module" in str(error) else ""
        raise ConfigError(f"{error}{hint}") from error
    except (Exception, SystemExit) as error:  # the user's module may fail in any way, and call sys.exit
        raise ConfigError.at(EXTRACT, f"'{name}' cannot be imported: {in_one_line(error)}") from error
    if not callable(function):
        raise ConfigError.at(EXTRACT, f"'{name}' is {function!r}; name a function that takes a path")
    return cast(Extract, function)


def module_file(name: str) -> Path | None:
    """The file with the text of the function; None where there is none."""
    module = inspect.getmodule(inspect.unwrap(load_extract(name)))
    file = None if module is None else getattr(module, "__file__", None)
    return None if file is None or not Path(file).is_file() else Path(file)


def source_checksum(name: str) -> int | None:
    """Of the module's text, so that another version of the function is noticed; None where there is no text."""
    file = module_file(name)
    return None if file is None else file_checksum(file)


def in_one_line(error: BaseException) -> str:
    """The kind of an error and its text.

    >>> in_one_line(ValueError("one\\n  two"))
    'ValueError: one two'
    """
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
