"""Samples <-> arrays: a batch at a time, in arrays that are used again and again.

A sample is `{"features": [...], "labels": {head: number}, "masks": {head: [...]}}`, with lists or NumPy arrays. Many of
them take many times the memory of the same numbers in arrays: convert early.
"""

import difflib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penstock.config.errors import DataError
from penstock.readers.store_schema import (
    FEATURES,
    LABELS,
    MASKS,
    ArrayNames,
    ArraySpec,
    DType,
    StoreSchema,
    sample_schema,
)

Sample = Mapping[str, Any]
"""{"features": [...], "labels": {head: int}, "masks": {head: [...]}}, and other arrays of the schema by their names."""

_NO_SAMPLE = f"is no sample; give a dict with '{FEATURES}', and '{LABELS}' and '{MASKS}' by head"
_LABEL_CURE = "; declare another type in preprocessing.schema.labels"
_MAPPINGS = (dict, Mapping)  # nearly all are dicts, which isinstance finds faster
_FLOATS = tuple(np.dtype(kind) for kind in (np.float32, np.float64))
_INTEGERS = tuple(np.dtype(kind) for kind in (np.int16, np.int64, np.uint64))
"""Types of whole labels that nobody declared; the first that holds those of the first sample is taken."""
_MAX_EXACT = 2.0**24
"""Beyond it, float32 does not hold all whole numbers: labels would become their neighbours."""
_BLOCK_SAMPLES = 256
Values = NDArray[Any]
Pack = Callable[[int, Any], None]
"""Puts the value of a sample into a row of an array, or raises one of `_REFUSALS` and leaves anything in the row."""

_REFUSALS = (struct.error, OverflowError, TypeError, ValueError)
"""Raised for a value that does not fit, and for one that may fit but comes in another form."""

_BLOCK_VALUES = 1 << 18
_LISTS = (list, tuple)  # other iterables may give their keys or letters, or can be read only once
_CODES = dict(zip(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"], "bhiqBHIQfd", strict=True))
"""NumPy's types in the terms of `struct`; others, such as bool, have no code that refuses what does not fit."""


def samples_to_arrays(
    samples: Iterable[Sample], schema: StoreSchema | None = None, *, file: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of samples: their first axis counts samples, and `save_batch` writes them.

    A sample is a dict: `features` are numbers in a row, `labels` a number by head, `masks` numbers in a row by head;
    labels and masks may be absent. Numbers come as lists or as NumPy arrays, of any type whose values fit.

    A schema has names, types and widths; `penstock.readers.store_schema.sample_schema` makes one. Without it the first
    sample gives the heads and widths, and the types are float32, int16 and int8; labels of the first sample that are
    floats or that int16 does not have make it float32 or int64. Other keys of samples are left out, unless a schema has
    an array of that name.

    Every sample is held to the schema: DataError names the sample, the head and the value that does not fit, after
    `file`, if there is one.

    >>> samples_to_arrays([{"features": [0.5, 3], "labels": {"move": 1}, "masks": {"move": [0, 1, 1]}}])
    {'strategic_features': array([[0.5, 3. ]], dtype=float32), 'labels_move': array([1], dtype=int16), \
'masks_move': array([[0, 1, 1]], dtype=int8)}
    """
    prefix = "" if file is None else f"{file}: "
    if isinstance(samples, Mapping):
        raise DataError(f"{prefix}this is one dict; give a list of samples, or any iterable of them")
    found = samples if isinstance(samples, list) else list(samples)
    if schema is None:
        if not found:
            raise DataError(f"{prefix}there are no samples to find a schema from; declare one")
        schema = inferred_schema(found[0], file=file)
    builder = BatchBuilder(schema, len(found))
    for sample in found:
        builder.add(sample, file=file)
    return builder.take()


def arrays_to_samples(
    arrays: Mapping[str, NDArray[Any]], *, names: ArrayNames | None = None
) -> Iterator[dict[str, Any]]:
    """The samples in arrays, one by one, with lists of Python's numbers; the inverse of `samples_to_arrays`.

    `names` has the names of arrays, where they are not `strategic_features`, `labels_{head}` and `masks_{head}`; an
    array of another name is in each sample under that name. Few samples at a time are in memory.

    >>> arrays = {"strategic_features": np.zeros((4, 2)), "labels_move": np.arange(4), "turn": np.ones(4)}
    >>> next(arrays_to_samples(arrays))
    {'features': [0.0, 0.0], 'labels': {'move': 0}, 'masks': {}, 'turn': 1.0}
    """
    if not isinstance(arrays, Mapping):
        raise DataError(f"arrays have type {type(arrays).__name__}; give a dict from names to arrays")
    parts = list((names or ArrayNames()).parts_of(arrays).values())
    found = {name: np.asarray(array) for name, array in arrays.items()}
    first, num_samples = "", 0
    for name, array in found.items():
        if array.ndim == 0:
            raise DataError(f"array '{name}' is a single value; its first axis must be samples")
        first, num_samples = (first, num_samples) if first else (name, len(array))
        if len(array) != num_samples:
            raise DataError(f"array '{first}' has {num_samples} samples but '{name}' has {len(array)}")

    def give() -> Iterator[dict[str, Any]]:
        for start in range(0, num_samples, _BLOCK_SAMPLES):
            columns = [array[start : start + _BLOCK_SAMPLES].tolist() for array in found.values()]
            for values in zip(*columns, strict=True):
                sample: dict[str, Any] = {FEATURES: [], LABELS: {}, MASKS: {}}
                for (key, head), value in zip(parts, values, strict=True):
                    if head is None:
                        sample[key] = value
                    else:
                        sample[key][head] = value
                yield sample

    return give()  # arguments are checked at the call, not at the first sample


def inferred_schema(
    sample: Sample,
    *,
    names: ArrayNames | None = None,
    feature_dtype: DTypeLike = np.float32,
    label_dtype: DTypeLike | None = None,
    mask_dtype: DTypeLike = np.int8,
    file: str | None = None,
) -> StoreSchema:
    """The schema of a first sample: its heads, its widths, and types like those of its labels (see `label_type`).

    Types that are given hold whatever is in it; `file` is what messages begin with. What the sample has under other
    keys than features, labels and masks is not in the schema.
    """
    prefix = f"{'' if file is None else f'{file}: '}sample 0: "
    if not isinstance(sample, Mapping):
        raise DataError(f"{prefix}{_NO_SAMPLE}")
    for part in (FEATURES, LABELS, MASKS):
        # The values of a misspelled key would be left out in silence.
        near = difflib.get_close_matches(part, map(str, sample), n=1, cutoff=0.8)
        if part not in sample and near:
            raise DataError(f"{prefix}has '{near[0]}' but no '{part}'; is it that?")
    if FEATURES not in sample:
        raise DataError(f"{prefix}{_NO_SAMPLE}")
    heads: dict[str, Mapping[str, Any]] = {part: sample.get(part) or {} for part in (LABELS, MASKS)}
    for part, values in heads.items():
        if not isinstance(values, Mapping):
            raise DataError(f"{prefix}{part}: {_wrong_heads(values)}")
    declared = None if label_dtype is None else np.dtype(label_dtype)
    return sample_schema(
        _width(sample[FEATURES], f"{prefix}{FEATURES}"),
        {head: declared or label_type(label) for head, label in heads[LABELS].items()},
        {head: _width(mask, f"{prefix}{MASKS}: head '{head}'") for head, mask in heads[MASKS].items()},
        names=names,
        feature_dtype=feature_dtype,
        mask_dtype=mask_dtype,
    )


def label_type(labels: Any) -> DType:
    """The type for labels like these: by their own type, since a float that is whole says nothing of the next.

    Floats give float32, or float64 where they are too large for it; whole numbers int16, or the first that holds them.
    A label that is missing (NaN), or no number, gives int16, which refuses it.

    >>> [str(label_type(label)) for label in (3, 3.0, 70_000, 1 << 63, 1e9)]
    ['int16', 'float32', 'int64', 'uint64', 'float64']
    """
    try:
        values = np.asarray(labels)
    except ValueError:
        return _INTEGERS[0]
    if values.dtype.kind == "f" and np.isfinite(values).all():
        is_small = values.dtype.itemsize <= _FLOATS[0].itemsize or (np.abs(values) <= _MAX_EXACT).all()
        return _FLOATS[0] if is_small else _FLOATS[1]
    fitting = (dtype for dtype in _INTEGERS if _fill(np.empty(values.shape, dtype), values) is None)
    return next(fitting, _INTEGERS[0])


def _width(values: Any, label: str) -> int:
    try:
        shape: tuple[int, ...] = np.shape(values)
    except ValueError:
        raise DataError(f"{label}: has parts of different lengths but should be numbers in a row") from None
    if len(shape) != 1:
        raise DataError(f"{label}: has shape {shape} but should be numbers in a row")
    return shape[0]


def _wrong_heads(values: Any) -> str:
    return f"has type {type(values).__name__}; give a dict from heads to values"


# Numbers into arrays of another type, exactly or not at all: integers must come out as they went in; floats may be
# rounded but must not become infinite. Python's numbers are packed straight into the bytes of an array: NumPy would
# first make an array of every list, which takes twice the time.


@dataclass(frozen=True)
class Misfit:
    """The first value that a type cannot hold: its index in the array, and why."""

    index: tuple[int, ...]
    value: Any
    reason: str


def _fill(target: Values, source: Values) -> Misfit | None:
    """Copy values into an array of the same shape and maybe another type; returns the first that does not fit."""
    if np.can_cast(source.dtype, target.dtype, "safe"):
        target[...] = source
        return None
    if source.dtype.kind not in "biuf":
        kind = "text" if source.dtype.kind in "SU" else f"of type {source.dtype}"
        kind = "no number" if source.dtype.hasobject else kind
        return Misfit((0,) * source.ndim, None, f"is {kind}; {target.dtype} takes numbers only")
    with np.errstate(all="ignore"):
        target[...] = source
        if target.dtype.kind != "f":
            wrong = target != source
        else:
            wrong = np.isinf(target)
            if wrong.any():
                wrong &= np.isfinite(source)
    if not wrong.any():
        return None
    index = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    value = source[index].item()
    return Misfit(index, value, _misfit_reason(value, target.dtype))


def _misfit_reason(value: Any, dtype: np.dtype[Any]) -> str:
    low, high = _limits_of(dtype)
    if dtype.kind == "f":
        return f"{value!r} does not fit {dtype} (at most {high:.6g})"
    if low <= value <= high:
        return f"{value!r} is no whole number; {dtype} takes only these"
    return f"{value!r} does not fit {dtype} ({low} to {high})"


def _limits_of(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        largest = float(np.finfo(dtype).max)
        return -largest, largest
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _rounding_error(target: Values, source: Values) -> float:
    """The largest difference between finite values and what became of them, some at a time."""
    largest = 0.0
    flat_target, flat_source = target.reshape(-1), source.reshape(-1)
    for start in range(0, flat_source.size, _BLOCK_VALUES):
        exact = flat_source[start : start + _BLOCK_VALUES].astype(np.float64)
        with np.errstate(invalid="ignore"):
            errors = np.abs(flat_target[start : start + _BLOCK_VALUES] - exact)
        largest = max(largest, float(np.nanmax(errors, initial=0.0)))
    return largest


def _packing(values: Values) -> Pack | None:
    """The fast way into an array of numbers, or of rows of numbers; None where its type has none."""
    dtype = values.dtype
    code = _CODES.get(dtype.str[1:]) if dtype.isnative else None
    if code is None:
        return None
    buffer = values.data
    if values.ndim == 1:
        if dtype.kind in "iu":
            return buffer.__setitem__
        number = struct.Struct(f"={code}")  # without "=", floats overflow unseen

        def pack_number(row: int, value: Any) -> None:
            number.pack_into(buffer, row * number.size, value)

        return pack_number
    width = values.shape[1]
    numbers = struct.Struct(f"={width}{code}")

    def pack_row(row: int, value: Any) -> None:
        if not isinstance(value, _LISTS):
            raise TypeError("is no list")
        numbers.pack_into(buffer, row * numbers.size, *value)

    if dtype != np.int8:
        return pack_row
    raw = values.reshape(-1).view(np.uint8).data

    def pack_mask(row: int, value: Any) -> None:
        # Lists of 0 and 1 are most of many samples: bytes() takes 0 to 127 in half the time.
        content = bytes(value) if isinstance(value, (*_LISTS, bytes)) else b""
        if len(content) != width or not content.isascii():
            raise ValueError("has other numbers, or another number of them")
        raw[row * width : (row + 1) * width] = content

    return pack_mask


# Batches.


class _Column:
    """One array of a batch, which samples of a key, and maybe a head under it, go to."""

    def __init__(self, spec: ArraySpec, batch_size: int, key: str, head: str | None) -> None:
        self.spec, self.key, self.head = spec, key, head
        self.values: Values = np.zeros(spec.shape(batch_size), spec.dtype)
        self.is_float16 = spec.dtype == np.float16
        self.largest_error = 0.0  # of rounding to float16; other types are not watched
        self._row_shape = self.values.shape[1:]
        self._pack = _packing(self.values)

    def put(self, row: int, value: Any) -> Misfit | None:
        """Copy the value of a sample: a number, a list or an array; returns what does not fit."""
        if not isinstance(value, np.ndarray):
            if self._pack is not None:
                try:
                    self._pack(row, value)
                    return None
                except _REFUSALS:
                    pass  # in another form, or wrong: the slow way finds out
            try:
                found = np.asarray(value)
            except ValueError:
                return Misfit((), None, "has parts of different lengths")
            # Beside strings NumPy makes strings of numbers too, which would then be blamed for it.
            value = np.asarray(value, object) if found.dtype.kind in "SU" else found
        if value.shape != self._row_shape:
            return self._wrong_shape(value)
        kind = value.dtype.kind
        if kind not in "biuf":
            return self._first_wrong(value.reshape(-1).tolist())
        if kind == self.spec.dtype.kind and kind in "iu":
            target = self.values[row, ...]
            target[...] = value
            # Whole numbers that come back as they went in fit. NumPy compares a row in four times the time.
            if target.astype(value.dtype).tobytes() == value.tobytes():
                return None
        misfit = self.put_block(row, value[None])
        return misfit and Misfit(misfit.index[1:], misfit.value, misfit.reason)

    def put_block(self, first_row: int, block: Values) -> Misfit | None:
        if block.shape[1:] != self._row_shape:
            return self._wrong_shape(block[0])
        target = self.values[first_row : first_row + len(block)]
        misfit = _fill(target, block)
        if misfit is None and self.is_float16:
            self.largest_error = max(self.largest_error, _rounding_error(target, block))
        return misfit

    def problem(self, label: str, index: tuple[int, ...], misfit: Misfit) -> str:
        """Labels are given the type of the first one, which may be the wrong one: they have a cure."""
        is_label = self.key == LABELS and isinstance(misfit.value, int | float | np.number)
        position = f"[{index[0]}]" if index else ""
        return f"{label}{position}: {misfit.reason}{_LABEL_CURE if is_label else ''}"

    def _wrong_shape(self, value: Values) -> Misfit:
        if self.spec.width is None:
            reason = f"has shape {value.shape} but should be one number"
        elif value.ndim != 1:
            reason = f"has shape {value.shape} but should be {self.spec.width} numbers in a row"
        else:
            reason = f"has {len(value)} values, not {self.spec.width}"
        return Misfit((), None, reason)

    def _first_wrong(self, items: list[Any]) -> Misfit:
        """The first value that is no number, or one beyond all types; only a row that has one gets here."""
        low, high = _limits_of(self.spec.dtype)
        for position, item in enumerate(items):
            index = () if self.spec.width is None else (position,)
            if not isinstance(item, int | float | np.number):
                return Misfit(index, item, f"{item!r} is no number")
            if not low <= item <= high:
                return Misfit(index, item, _misfit_reason(item, self.spec.dtype))
        return Misfit((), None, "has values that are no numbers")


class BatchBuilder:
    """Fills the arrays of a schema, up to `batch_size` samples; a sample that is refused leaves no trace."""

    def __init__(self, schema: StoreSchema, batch_size: int) -> None:
        self.schema, self.batch_size = schema, batch_size
        parts = schema.names.parts_of(spec.name for spec in schema.arrays)
        self._columns = {spec.name: _Column(spec, batch_size, *parts[spec.name]) for spec in schema.arrays}
        self._single = {column.key: column for column in self._columns.values() if column.head is None}
        self._heads = {
            part: {
                column.head: column
                for column in self._columns.values()
                if column.key == part and column.head is not None
            }
            for part in (LABELS, MASKS)
        }
        self._num_rows = 0
        self._num_seen = 0

    def __len__(self) -> int:
        return self._num_rows

    @property
    def full(self) -> bool:
        return self._num_rows >= self.batch_size

    @property
    def largest_errors(self) -> dict[str, float]:
        return {name: column.largest_error for name, column in self._columns.items() if column.is_float16}

    def add(self, sample: Sample, *, file: str | None = None, number: int | None = None) -> None:
        """Copy one sample; `file` and its number there are what messages call it."""
        if self.full:
            raise ValueError(f"the batch is full with {len(self)} samples; take it before another is added")
        try:
            self._put(sample)
        except DataError as error:
            prefix = _prefix(file, self._num_seen if number is None else number)
            raise DataError(f"{prefix}{error}") from None
        self._num_rows += 1
        self._num_seen += 1

    def _put(self, sample: Sample) -> None:
        if not isinstance(sample, _MAPPINGS):
            raise DataError(_NO_SAMPLE)
        if FEATURES not in self._single and len(sample.get(FEATURES, ())):
            raise DataError(f"{FEATURES}: has {len(sample[FEATURES])} that no array of the schema takes")
        row = self._num_rows
        for key, column in self._single.items():
            if key not in sample:
                raise DataError(f"has no '{key}'")
            misfit = column.put(row, sample[key])
            if misfit is not None:
                raise DataError(column.problem(key, misfit.index, misfit))
        for key, columns in self._heads.items():
            values = sample.get(key) or {}
            if not isinstance(values, _MAPPINGS):
                raise DataError(f"{key}: {_wrong_heads(values)}")
            if values.keys() != columns.keys():
                missing = [head for head in columns if head not in values]
                if missing:
                    raise DataError(f"{key}: head '{missing[0]}' is missing")
                unknown = next(head for head in values if head not in columns)
                known = ", ".join(columns) or "none"
                raise DataError(f"{key}: head '{unknown}' is not in the schema ({known})")
            for head, column in columns.items():
                misfit = column.put(row, values[head])
                if misfit is not None:
                    raise DataError(column.problem(f"{key}: head '{head}'", misfit.index, misfit))

    def add_arrays(
        self,
        arrays: Mapping[str, NDArray[Any]],
        first: int = 0,
        *,
        file: str | None = None,
        number: int | None = None,
    ) -> int:
        """Copy samples of whole arrays from `first` on, as many as fit; returns how many."""
        prefix = "" if file is None else f"{file}: "
        num_samples = len(next(iter(arrays.values()), ()))
        for name in {**self._columns, **arrays}:
            if name not in arrays or name not in self._columns:
                problem = "is missing" if name in self._columns else "is not in the schema"
                raise DataError(f"{prefix}array '{name}' {problem}")
            if len(arrays[name]) != num_samples:
                raise DataError(
                    f"{prefix}array '{name}' has {len(arrays[name])} samples, but others have {num_samples}"
                )
        count = max(0, min(self.batch_size - self._num_rows, num_samples - first))
        for name, column in self._columns.items() if count else ():
            misfit = column.put_block(self._num_rows, arrays[name][first : first + count])
            if misfit is not None:
                row = (self._num_seen if number is None else number) + (misfit.index or (0,))[0]
                problem = column.problem(f"array '{name}'", misfit.index[1:], misfit)
                raise DataError(f"{_prefix(file, row)}{problem}")
        self._num_rows += count
        self._num_seen += count
        return count

    def take(self) -> dict[str, NDArray[Any]]:
        """The arrays of all samples since the last time: views, valid until another sample is added."""
        num_rows, self._num_rows = self._num_rows, 0
        return {name: column.values[:num_rows] for name, column in self._columns.items()}

    def clear(self) -> None:
        self._num_rows = 0


def _prefix(file: str | None, number: int) -> str:
    return f"{'' if file is None else f'{file}: '}sample {number}: "
