"""The numbers of Arrow columns as arrays, without a step of Python for a value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError

Values = NDArray[Any]

_NOT_FILLED = (
    "correct it, or leave the row out with a function (preprocessing.extract): only features can be filled"
)
_FILL = (
    "set preprocessing.schema.fill_value to the number that stands for it, or leave the row out with a function "
    "(preprocessing.extract)"
)


def holds_numbers(kind: Any) -> bool:
    """Whether a type is that of numbers, or of lists of them."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return holds_numbers(kind.value_type)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def with_fill_value(column: Any, fill_value: float | None, file: str, name: str, first_row: int = 0) -> Any:
    """A column of features with a number in place of those that are missing; without one they are refused."""
    is_nested = pa.types.is_nested(column.type)
    if column.null_count and (fill_value is None or is_nested):
        row = first_row + pc.index(column.is_null(), True).as_py()
        problem = "is null; a list cannot be filled" if is_nested else f"is null; {_FILL}"
        raise DataError.at(problem, file=file, row=row, column=name)
    values = column.flatten() if is_nested else column
    if not values.null_count or pa.types.is_nested(values.type):
        return column
    if fill_value is None:
        place = pc.index(values.is_null(), True).as_py()
        row = first_row + pc.list_parent_indices(column)[place].as_py()
        raise DataError.at(f"holds a null in its list; {_FILL}", file=file, row=row, column=name)
    if not (pa.types.is_null(values.type) or holds_numbers(values.type)):
        return column  # which is refused as what it is
    filled = values.cast(pa.float64(), safe=False).fill_null(fill_value)
    if not is_nested:
        return filled
    if pa.types.is_fixed_size_list(column.type):
        return pa.FixedSizeListArray.from_arrays(filled, column.type.list_size)
    return _lists_of(column, filled)


def _lists_of(column: Any, values: Any) -> Any:
    """The lists of a column with other values in them."""
    ends = np.cumsum(pc.list_value_length(column).to_numpy())
    return pa.LargeListArray.from_arrays(pa.array(np.concatenate(([0], ends)), pa.int64()), values)


def column_numbers(column: Any, file: str, name: str, first_row: int = 0) -> Values:
    """The numbers of a column: one for each row, or a row of them where it holds lists."""
    kind = column.type
    if column.null_count:
        row = first_row + pc.index(column.is_null(), True).as_py()
        raise DataError.at(f"is null; {_NOT_FILLED}", file=file, row=row, column=name)
    if not holds_numbers(kind):
        raise DataError.at(f"holds {kind}, not numbers", file=file, column=name)
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_numbers(column, file, name, first_row)
    values: Values = column.to_numpy(zero_copy_only=False)
    return values


def _list_numbers(column: Any, file: str, name: str, first_row: int) -> Values:
    values = column.flatten()
    if pa.types.is_nested(values.type):
        raise DataError.at("holds lists of lists; give one list for a row", file=file, column=name)
    if values.null_count:
        place = pc.index(values.is_null(), True).as_py()
        row = first_row + pc.list_parent_indices(column)[place].as_py()
        raise DataError.at(f"holds a null in its list; {_NOT_FILLED}", file=file, row=row, column=name)
    flat: Values = values.to_numpy(zero_copy_only=False)
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


def wide(values: Values) -> Values:
    """A row for each sample, also where there is one number."""
    return values if values.ndim == 2 else values[:, None]


def side_by_side(columns: Sequence[Values]) -> Values:
    """The numbers of several columns as the rows of one array, of a type that holds them all."""
    if len(columns) == 1:
        return wide(columns[0])
    parts = [wide(column) for column in columns]
    return np.concatenate(parts, axis=1, dtype=np.result_type(*parts), casting="unsafe")
