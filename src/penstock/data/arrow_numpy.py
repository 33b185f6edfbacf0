"""Arrow columns as NumPy arrays and back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.readers.columns import ArrowArray
from penstock.readers.order import Int64Array
from penstock.readers.stream import ROW_COLUMN, file_and_row


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """One list for each row: all values in a row, and where each list begins and ends in them.

    `batch["clicks"][3]` is the list of row 3, a view. Lists of lists have lists as their values.

    >>> clicks = Ragged(np.array([7, 8, 9]), np.array([0, 2, 2, 3]))
    >>> [list.tolist() for list in clicks]
    [[7, 8], [], [9]]
    """

    values: "Column"
    offsets: Int64Array
    """One more than there are rows: row i has the values from offsets[i] to offsets[i + 1]."""

    @property
    def lengths(self) -> Int64Array:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        shown = ", ".join(str(self[row].tolist()) for row in range(min(3, len(self))))
        return f"Ragged([{shown}{', ...' if len(self) > 3 else ''}], {len(self)} rows)"

    def __getitem__(self, row: "int | slice") -> Any:
        if isinstance(row, slice):
            start, end, step = row.indices(len(self))
            if step != 1:
                raise IndexError(f"rows are sliced one after another, not with a step of {step}")
            end = max(start, end)
            first, last = int(self.offsets[start]), int(self.offsets[end])
            return Ragged(self.values[first:last], self.offsets[start : end + 1] - first)
        if not -len(self) <= row < len(self):
            raise IndexError(f"there is no row {row}; there are {len(self)}")
        row %= len(self)
        return self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def tolist(self) -> list[Any]:
        return [values.tolist() for values in self]

    def padded(self, width: int | None = None, fill: Any = 0) -> NDArray[Any]:
        """An array of `width` columns (the longest list where it is None); lists are cut or filled at their end.

        >>> Ragged(np.array([7, 8, 9]), np.array([0, 2, 2, 3])).padded()
        array([[7, 8],
               [0, 0],
               [9, 0]])
        """
        if isinstance(self.values, Ragged):
            raise TypeError("lists of lists have no rectangle; pad the lists inside, `.values.padded()`")
        lengths = self.lengths
        columns = np.arange(int(lengths.max(initial=0)) if width is None else width)
        is_value = columns < lengths[:, None]
        result = np.full(is_value.shape, fill, self.values.dtype)
        result[is_value] = self.values[(self.offsets[:-1, None] + columns)[is_value]]
        return result


Column: TypeAlias = "NDArray[Any] | Ragged"
Columns: TypeAlias = dict[str, Column]
"""A batch: arrays of one length, by column."""


@dataclass(frozen=True)
class Origin:
    """The epoch and the rows of a batch that was read; looked at only when somebody asks."""

    epoch: int
    record_batch: pa.RecordBatch
    file_paths: Sequence[str]
    is_exact: bool = True
    """Whether row i is row i of the record batch: which rows a function of a batch has left out, nobody knows."""

    def of_rows(self, rows: Sequence[int]) -> "Origin":
        ids = self.record_batch.select([ROW_COLUMN])
        return Origin(self.epoch, ids.take(pa.array(rows, pa.int64())), self.file_paths, self.is_exact)

    @property
    def num_rows(self) -> int:
        return self.record_batch.num_rows

    @cached_property
    def row_ids(self) -> Int64Array:
        return np.asarray(self.record_batch.column(ROW_COLUMN))

    def of_row(self, row: int) -> tuple[str, int]:
        return file_and_row(self.row_ids[row], self.file_paths)

    def describe(self, row: int) -> str:
        file, row_in_file = self.of_row(row if self.is_exact else 0)
        if row and not self.is_exact:
            return f"row {row} of what is left of the batch that begins with row {row_in_file} of {file}"
        return f"row {row_in_file} of {file}"


_OFFSETS = {False: np.int32, True: np.int64}
"""The integers that count the values of lists, by whether the lists are large."""


class HasNulls(Exception):
    """A column without a value for 'no value', and whose values are no floats, has a row that needs it."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class NotAnArray(Exception):
    """A type that is no array of numbers, texts or lists."""


def columns_of(batch: pa.RecordBatch, origin: Origin, shapes: Mapping[str, tuple[int, ...]]) -> Columns:
    """The columns of a batch as arrays; what cannot be one is a DataError with file and row.

    `shapes` are those of a row where it has more than one axis at its source.
    """
    columns: Columns = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column = _converted(array)
        except HasNulls as error:
            file, row = origin.of_row(error.row)
            problem = (
                f"has no value, and float64, which has NaN, does not hold its {leaf_type(array.type)}; "
                f"say what to take: .fill_nulls({name}=...)"
            )
            raise DataError.at(problem, file=file, row=row, column=name) from None
        except NotAnArray:
            problem = (
                f"is of type {array.type}, which is no array; leave it out with .select([...]), or read it "
                "with .to_arrow()"
            )
            raise DataError.at(problem, column=name) from None
        if name in shapes and isinstance(column, np.ndarray):
            column = column.reshape(len(column), *shapes[name])
        columns[name] = column
    return columns


def _converted(array: ArrowArray) -> Column:
    kind = array.type
    if pt.is_dictionary(kind):
        return _converted(array.dictionary_decode())
    if pt.is_fixed_size_list(kind):
        return _fixed_lists(array)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _lists(array)
    if pt.is_map(kind) or pt.is_struct(kind) or pt.is_union(kind) or pt.is_null(kind):
        raise NotAnArray
    if pt.is_decimal(kind):
        array = array.cast(pa.float64())
    elif is_whole_number(kind) and array.null_count:
        try:
            array = (array.cast(pa.uint8()) if pt.is_boolean(kind) else array).cast(pa.float64())
        except pa.ArrowInvalid:  # a number that float64 would change
            raise HasNulls(first_null(array)) from None
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _lists(array: ArrowArray) -> Ragged:
    """Values without those of rows that are null; a view where none is."""
    offsets = _offsets(array)
    try:
        return Ragged(_converted(array.flatten()), offsets)
    except HasNulls as error:
        raise HasNulls(int(np.searchsorted(offsets, error.row, side="right")) - 1) from None


def _offsets(array: ArrowArray) -> Int64Array:
    """Where lists begin and end in the flattened values; one that is null is empty."""
    lengths = array.value_lengths()
    if lengths.null_count:
        lengths = lengths.fill_null(0)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths.to_numpy(), out=offsets[1:])
    return offsets


def _fixed_lists(array: ArrowArray) -> Column:
    size = array.type.list_size
    values = array.values.slice(array.offset * size, len(array) * size)
    try:
        converted = _converted(values)
    except HasNulls as error:
        raise HasNulls(error.row // size) from None
    if isinstance(converted, Ragged):
        raise NotAnArray
    rows = converted.reshape(len(array), size, *converted.shape[1:])
    if not array.null_count:
        return rows
    no_value = {"f": np.nan, "M": np.datetime64("NaT"), "O": None}
    floats = rows.astype(np.float64) if rows.dtype.kind in "iub" else rows
    if floats.dtype.kind not in no_value or (
        floats is not rows and (floats.astype(rows.dtype) != rows).any()
    ):
        raise HasNulls(first_null(array))
    rows = floats.copy()
    rows[array.is_null().to_numpy(zero_copy_only=False)] = no_value[rows.dtype.kind]
    return rows


def first_null(array: ArrowArray) -> int:
    return int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))


def fill_nulls(batch: pa.RecordBatch, fills: Mapping[str, Any]) -> pa.RecordBatch:
    """The batch with a value wherever one of these columns has none, inside lists too; a list that is null is empty."""
    for name, value in fills.items():
        index = batch.schema.get_field_index(name)
        batch = batch.set_column(index, batch.schema.field(index), _filled(batch.column(index), value))
    return batch


def _filled(array: ArrowArray, value: Any) -> ArrowArray:
    kind = array.type
    if pt.is_list(kind) or pt.is_large_list(kind):
        if not array.flatten().null_count:
            return array
        return type(array).from_arrays(
            _offsets(array).astype(_OFFSETS[pt.is_large_list(kind)]),
            _filled(array.flatten(), value),
            type=kind,
        )
    if pt.is_fixed_size_list(kind):
        if array.null_count or not array.flatten().null_count:
            return array
        return type(array).from_arrays(_filled(array.flatten(), value), type=kind)
    return array.fill_null(value) if array.null_count else array


def leaf_type(kind: Any) -> Any:
    while pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        kind = kind.value_type
    return kind.value_type if pt.is_dictionary(kind) else kind


def is_whole_number(kind: Any) -> bool:
    return pt.is_integer(kind) or pt.is_boolean(kind)


def is_float(column: Any) -> bool:
    return is_float(column.values) if isinstance(column, Ragged) else np.asarray(column).dtype.kind == "f"


def record_batch_of(columns: Columns) -> pa.RecordBatch:
    """The columns of a batch; more dimensions become lists of a fixed size, `Ragged` becomes lists."""
    arrays = []
    for name, column in columns.items():
        try:
            arrays.append(_array(column))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise DataError(f"map: column '{name}' cannot be given out as Arrow: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _array(column: Column) -> Any:
    if isinstance(column, Ragged):
        offsets: Any = pa.array(column.offsets)
        return pa.LargeListArray.from_arrays(offsets, _array(column.values))
    values: Any = pa.array(np.ascontiguousarray(column).reshape(-1) if column.ndim > 1 else column)
    for size in reversed(column.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    return values


_OBJECT_BYTES = 64
"""Of a text or another object, and of a value that stands alone."""


def element_bytes(element: Any) -> int:
    """Bytes of a batch or a row: exact for numbers, an estimate for objects."""
    if isinstance(element, dict):
        return sum(element_bytes(value) for value in element.values())
    if isinstance(element, Ragged):
        return element_bytes(element.values) + element.offsets.nbytes
    if isinstance(element, np.ndarray) and element.dtype.hasobject:
        return int(element.size) * _OBJECT_BYTES
    if isinstance(element, list):
        return len(element) * _OBJECT_BYTES
    return max(_OBJECT_BYTES, int(getattr(element, "nbytes", 0)))
