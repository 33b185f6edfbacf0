"""A raw file -> samples or arrays: by the user's function, or column by column through the readers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.nearest import nearest_name
from penstock.config.sizes import MIB
from penstock.prep.preparing.extraction.column_roles import NoNumbers, Roles, batch_arrays, find_roles
from penstock.prep.preparing.extraction.extract_function import load_extract
from penstock.prep.preparing.extraction.feature_groups import split_arrays, split_sample
from penstock.prep.preparing.extraction.further_columns import check_further, told_by_first
from penstock.prep.preparing.extraction.split_groups import groups_of, sample_group
from penstock.prep.preparing.extraction.text_values import is_text, text_in_file, text_numbers
from penstock.prep.sections import SampleSchema
from penstock.readers.files import DataFile
from penstock.readers.reading import read_blocks
from penstock.readers.samples import Sample
from penstock.readers.sections import ReadingSection
from penstock.readers.store_schema import FEATURES, LABELS, MASKS, ArrayNames
from penstock.readers.survey import Survey, Wanted, dataset_type_of, survey
from penstock.runtime.budget import Share

READER_BYTES = 64 * MIB
"""What reading columns may hold; a file that needs more is read with as little as it needs."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """Whole arrays of some samples."""

    values: Mapping[str, NDArray[Any]]

    @property
    def num_samples(self) -> int:
        """The length of the first axis."""
        return len(next(iter(self.values.values()), ()))


Item = Sample | Arrays
_COLUMNS = pa.RecordBatch | pa.Table
_YIELD = "it should give samples, one after the other"


@dataclass(frozen=True, slots=True)
class Extraction:
    """How raw files become samples; the same in every process."""

    place: str | None
    """Of the user's function; None: columns as they are."""
    declared: SampleSchema
    reading: ReadingSection
    group_key: str | None = None
    """What tells the group of a sample, where splits keep groups together."""
    told_by_first: tuple[str, ...] = ()
    """Keys of the schema that the columns of the first file have filled; others must have no further ones."""

    @property
    def names(self) -> ArrayNames:
        """How arrays are called."""
        return ArrayNames(self.declared.features_name, self.declared.label_prefix, self.declared.mask_prefix)

    @property
    def _array_beginnings(self) -> tuple[str, ...]:
        """What names of arrays begin with, and what stands for features."""
        names = self.names
        return FEATURES, names.features, names.labels, names.masks

    def first(self, file: DataFile) -> "tuple[Extraction, Item] | None":
        """The first that a file gives, and how all files are extracted then: where it has columns, they have these."""
        extraction = self
        if self.place is None:
            found = self._survey(file)
            if not found.num_rows:  # nobody knows the types of its columns
                return None
            extraction = self._with_roles(self._file_roles(found.columns, file))
        for given in extraction._given(file):
            if self.place is not None and isinstance(given, _COLUMNS):
                roles = find_roles(given.schema, self.declared, self.group_key, file.path)
                extraction = self._with_roles(roles)
            for item in extraction._understood(given, file.path, 0):
                if not isinstance(item, Arrays) or item.num_samples:
                    return extraction, item
        return None

    def items(self, file: DataFile) -> Iterator[Item]:
        """What a file gives, in order, with groups where they are wanted."""
        number = 0
        for given in self._given(file):
            for item in self._understood(given, file.path, number):
                yield item
                number += item.num_samples if isinstance(item, Arrays) else 1

    def with_columns(self, columns: Mapping[str, Any]) -> "Extraction":
        """With the columns of the first file, by the keys of the schema that name them.

        A function that gives samples has none: then they are as declared.
        """
        declared = self.declared
        has_columns = self.place is None or any(columns[key] != getattr(declared, key) for key in columns)
        told = told_by_first(columns, declared) if has_columns else ()
        return replace(self, declared=declared.model_copy(update=dict(columns)), told_by_first=told)

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
        if self.place is None:
            return self._read_columns(file)
        given: Any = load_extract(self.place)(file.path)
        if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | _COLUMNS):
            advice = "yield it in place of return" if isinstance(given, Mapping | _COLUMNS) else _YIELD
            raise DataError(f"{file.path}: '{self.place}' gave {_kind(given)}; {advice}")
        return given

    def _read_columns(self, file: DataFile) -> Iterator[pa.RecordBatch]:
        found = self._survey(file)
        if not found.num_rows:
            return
        columns = found.columns
        roles = self._file_roles(columns, file)
        check_further(columns.names, self.declared, self.group_key, self.told_by_first, file.path)
        texts = [name for name in roles.number_columns if is_text(columns.field(name).type)]
        for name in texts:
            error = text_in_file(self.reading, file, name, roles.key_of(name))
            if error is not None:
                raise error
        found = self._survey(file, roles.columns)
        share = Share("the reader", max(found.least_bytes, min(found.ample_bytes, READER_BYTES)))
        with closing(iter(read_blocks(found, share))) as batches:  # type: ignore[type-var]
            for batch in batches:
                yield _with_numbers(batch, texts)

    def _survey(self, file: DataFile, columns: Sequence[str] | None = None) -> Survey:
        """Look at a file; a group of a CSV file is the text that is written there, also in a column of digits."""
        texts = [] if self.group_key is None else [self.group_key]
        is_csv = dataset_type_of(self.reading, [file]) == "CsvDataset"
        return survey(self.reading, [file], Wanted(columns, texts if is_csv else ()))

    def _file_roles(self, columns: pa.Schema, file: DataFile) -> Roles:
        """What the columns of a file are. One with text is no feature, unless all in it is missing or a number.

        The error has the row and value that say so.
        """
        while True:
            try:
                return find_roles(columns, self.declared, self.group_key, file.path)
            except NoNumbers as error:
                word = text_in_file(self.reading, file, error.column)
                if word is not None:
                    raise word from None
                place = columns.get_field_index(error.column)
                columns = columns.set(place, pa.field(error.column, pa.float64()))

    def _understood(self, given: Any, file: str, number: int) -> Iterator[Item]:
        if isinstance(given, pa.RecordBatch):
            yield self._of_batch(given, file, number)
        elif isinstance(given, pa.Table):
            for batch in given.to_batches():
                yield self._of_batch(batch, file, number)
                number += batch.num_rows
        elif not isinstance(given, Mapping):
            raise DataError(
                f"{file}: sample {number}: '{self.place}' gave {_kind(given)}; it should give dicts of samples or "
                "of whole arrays, or Arrow record batches"
            )
        elif FEATURES in given and getattr(given[FEATURES], "ndim", 1) < 2:
            yield self._of_sample(given, file, number)
        elif not any(str(name).startswith(self._array_beginnings) for name in given):
            raise DataError(f"{file}: sample {number}: {_without_features([str(name) for name in given])}")
        else:
            yield self._of_arrays(given, file, number)

    def _of_sample(self, sample: Sample, file: str, number: int) -> Sample:
        sample = split_sample(sample, self.declared, f"{file}: sample {number}")
        if self.group_key is None:
            return sample
        return {**sample, self.names.groups: sample_group(sample, self.group_key, file, number)}

    def _of_batch(self, batch: pa.RecordBatch, file: str, number: int) -> Arrays:
        roles = find_roles(batch.schema, self.declared, self.group_key, file)
        check_further(batch.schema.names, self.declared, self.group_key, self.told_by_first, file)
        self._check_named(roles, file)
        arrays = split_arrays(batch_arrays(batch, roles, self.declared, file, number), self.declared, file)
        if self.group_key is not None:
            groups: Any = batch.column(self.group_key)
            if self.place is None and is_text(groups.type):  # an empty cell tells no group
                groups = pc.if_else(pc.equal(groups, pa.scalar("", groups.type)), None, groups)
            arrays[self.names.groups] = groups_of(groups, self.group_key, file, number)
        return Arrays(arrays)

    def _check_named(self, roles: Roles, file: str) -> None:
        """Features are never taken by the place of their columns, which may be another in every file."""
        declared = self.declared
        if declared.feature_columns or declared.feature_groups or roles.features == (declared.features_name,):
            return
        raise DataError(
            f"{file}: gives columns, but the first sample was a dict, so that nobody knows which are features in "
            "which order; name them in preprocessing.schema.feature_columns"
        )

    def _of_arrays(self, given: Mapping[str, Any], file: str, number: int) -> Arrays:
        """Arrays by their names, or in the form of a sample."""
        framed = next((name for name, values in given.items() if hasattr(values, "columns")), None)
        if framed is not None:
            raise DataError(
                f"{file}: sample {number}: '{framed}' is {_kind(given[framed])}, whose columns would be taken by their "
                "place; choose them by name, as in frame[names].to_numpy(), or yield a pyarrow.Table instead"
            )
        arrays = {name: np.asarray(values) for name, values in given.items() if name not in (LABELS, MASKS)}
        if FEATURES in arrays:
            arrays[self.names.features] = arrays.pop(FEATURES)
        arrays |= {
            self.names.label(head): np.asarray(values) for head, values in given.get(LABELS, {}).items()
        }
        arrays |= {self.names.mask(head): np.asarray(values) for head, values in given.get(MASKS, {}).items()}
        if not arrays or any(array.ndim == 0 for array in arrays.values()):
            name = next((name for name, array in arrays.items() if array.ndim == 0), FEATURES)
            raise DataError(f"{file}: '{name}' is no array with samples along its first axis")
        arrays = split_arrays(arrays, self.declared, file)
        if self.group_key is not None:
            arrays.pop(self.group_key, None)
            groups = given.get(self.group_key)
            arrays[self.names.groups] = groups_of(groups, self.group_key, file, number)
        return Arrays(arrays)


def _with_numbers(batch: pa.RecordBatch, texts: Sequence[str]) -> pa.RecordBatch:
    """With numbers in place of texts that are numbers or missing."""
    for name in texts:
        batch = batch.set_column(batch.schema.get_field_index(name), name, text_numbers(batch.column(name)))
    return batch


def _without_features(names: Sequence[str]) -> str:
    near = nearest_name(FEATURES, names)
    question = "" if near is None else f"; is it '{near}'?"
    return f"has no '{FEATURES}' but {', '.join(map(repr, names)) or 'nothing'}{question}"


def _kind(given: Any) -> str:
    return f"an object of type {type(given).__name__}"
