"""Samples -> arrays, a batch at a time, in arrays that are used again and again.

The memory it takes is that of one batch, whatever the number of samples; there is no step of Python for a value.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.conversion import Misfit
from penstock.store.sample_column import Misfitting, SampleColumn
from penstock.store.schema import FEATURES, LABELS, MASKS, StoreSchema

Sample = Mapping[str, Any]
"""{"features": [...], "labels": {head: int}, "masks": {head: [...]}}, and other arrays of the schema by their names."""

NO_SAMPLE = f"is no sample; give a dict with '{FEATURES}', and '{LABELS}' and '{MASKS}' by head"
_LABEL_CURE = "; declare another type in preprocessing.schema.labels"
_MAPPINGS = (dict, Mapping)
"""Nearly all are dicts, and these are known at once."""
_NUMBERS = (int, float, np.number)


class BatchBuilder:
    """Fills the arrays of a schema, up to `batch_size` samples.

    A sample that is refused at once leaves no trace. A number in a NumPy array that does not fit its type may be
    noticed later, at the latest when the batch is taken; such a batch is not given, and `clear` empties it.
    """

    def __init__(self, schema: StoreSchema, batch_size: int) -> None:
        self.schema = schema
        self.batch_size = batch_size
        self._columns = {spec.name: SampleColumn(spec, batch_size) for spec in schema.arrays}
        self._features: SampleColumn | None = None
        self._heads: dict[str, dict[str, SampleColumn]] = {LABELS: {}, MASKS: {}}
        self._others: dict[str, SampleColumn] = {}
        for name, (key, head) in schema.names.places(self._columns).items():
            column = self._columns[name]
            if head is not None:
                self._heads[key][head] = column
            elif key == FEATURES:
                self._features = column
            else:
                self._others[name] = column
        self._places: list[tuple[str | None, int]] = []
        self._num_seen = 0

    def __len__(self) -> int:
        return len(self._places)

    @property
    def full(self) -> bool:
        """Whether there is no room for another sample."""
        return len(self._places) >= self.batch_size

    @property
    def largest_errors(self) -> dict[str, float]:
        """The largest rounding error so far of each array of float16."""
        return {
            name: column.largest_error
            for name, column in self._columns.items()
            if column.spec.dtype == "float16"
        }

    def add(self, sample: Sample, *, file: str | None = None, number: int | None = None) -> None:
        """Take one sample; `file` and its number there are what messages call it."""
        row = len(self._places)
        if row >= self.batch_size:
            raise ValueError(f"the batch is full with {row} samples; take it before another is added")
        self._places.append((file, self._num_seen if number is None else number))
        try:
            self._put(row, sample)
        except BaseException:
            self._places.pop()
            raise
        self._num_seen += 1

    def add_arrays(
        self,
        arrays: Mapping[str, NDArray[Any]],
        first: int = 0,
        *,
        file: str | None = None,
        number: int | None = None,
    ) -> int:
        """Take samples of whole arrays from `first` on, as many as there is room for; gives how many."""
        start = len(self._places)
        end = min(first + self.batch_size - start, self._num_samples(arrays, file))
        if end <= first:
            return 0
        number = self._num_seen if number is None else number
        self._places += [(file, number + index) for index in range(end - first)]
        for name, column in self._columns.items():
            try:
                column.put_block(start, arrays[name][first:end])
            except Misfitting as error:
                refusal = self._refusal(name, error, f"array '{name}'")
                del self._places[start:]
                raise refusal from None
        self._num_seen += end - first
        return end - first

    def take(self) -> dict[str, NDArray[Any]]:
        """The arrays of all samples since the last time. They are views, good until another sample is added."""
        num_rows = len(self._places)
        for name, column in self._columns.items():
            try:
                column.settle(num_rows)
            except Misfitting as error:
                raise self._refusal(name, error) from None
        self._places.clear()
        return {name: column.values[:num_rows] for name, column in self._columns.items()}

    def clear(self) -> None:
        """Forget the samples since the last time."""
        self._places.clear()
        for column in self._columns.values():
            column.forget()

    def _put(self, row: int, sample: Sample) -> None:
        if not isinstance(sample, _MAPPINGS):
            raise DataError(f"{self._sample_place(row)}{NO_SAMPLE}")
        if self._features is not None:
            self._put_one(row, sample, FEATURES, self._features)
        elif len(sample.get(FEATURES, ())):
            raise DataError(
                f"{self._sample_place(row)}{FEATURES}: has {len(sample[FEATURES])} that no array of the schema takes"
            )
        for key, columns in self._heads.items():
            self._put_heads(row, sample, key, columns)
        for name, column in self._others.items():
            self._put_one(row, sample, name, column)

    def _put_one(self, row: int, sample: Sample, key: str, column: SampleColumn) -> None:
        if key not in sample:
            raise DataError(f"{self._sample_place(row)}has no '{key}'")
        try:
            column.put(row, sample[key])
        except Misfitting as error:
            raise self._refusal(column.spec.name, error) from None

    def _put_heads(self, row: int, sample: Sample, key: str, columns: Mapping[str, SampleColumn]) -> None:
        values = sample.get(key) or {}
        if not isinstance(values, _MAPPINGS):
            raise DataError(f"{self._sample_place(row)}{key}: {wrong_heads(values)}")
        if values.keys() != columns.keys():
            raise self._other_heads(row, key, values, columns)
        for head, column in columns.items():
            try:
                column.put(row, values[head])
            except Misfitting as error:
                raise self._refusal(column.spec.name, error) from None

    def _other_heads(
        self, row: int, key: str, values: Mapping[str, Any], columns: Mapping[str, SampleColumn]
    ) -> DataError:
        missing = [head for head in columns if head not in values]
        if missing:
            return DataError(f"{self._sample_place(row)}{key}: head '{missing[0]}' is missing")
        unknown = next(head for head in values if head not in columns)
        known = ", ".join(columns) or "none"
        return DataError(f"{self._sample_place(row)}{key}: head '{unknown}' is not in the schema ({known})")

    def _refusal(self, name: str, error: Misfitting, place: str | None = None) -> DataError:
        """What to say of a value for an array; labels are given the type of the first, which may be the wrong one."""
        misfit = error.misfit
        key, head = self.schema.names.place(name)
        if place is None:
            place = key if head is None else f"{key}: head '{head}'"
        cure = _LABEL_CURE if key == LABELS and isinstance(misfit.value, _NUMBERS) else ""
        return DataError(f"{self._sample_place(error.row)}{place}{_index(misfit)}: {misfit.reason}{cure}")

    def _sample_place(self, row: int) -> str:
        file, number = self._places[row]
        return f"{'' if file is None else f'{file}: '}sample {number}: "

    def _num_samples(self, arrays: Mapping[str, Any], file: str | None) -> int:
        """Of whole arrays, which must be those of the schema and equally long."""
        place = "" if file is None else f"{file}: "
        num_samples = len(next(iter(arrays.values()), ()))
        for name in {**self._columns, **arrays}:
            if name not in arrays or name not in self._columns:
                problem = "is missing" if name in self._columns else "is not in the schema"
                raise DataError(f"{place}array '{name}' {problem}")
            if len(arrays[name]) != num_samples:
                raise DataError(
                    f"{place}array '{name}' has {len(arrays[name])} samples, but others have {num_samples}"
                )
        return num_samples


def wrong_heads(values: Any) -> str:
    """What is wrong with labels or masks that do not come by head."""
    return f"has type {type(values).__name__}; give a dict from heads to values"


def _index(misfit: Misfit) -> str:
    return f"[{misfit.index[0]}]" if misfit.index else ""
