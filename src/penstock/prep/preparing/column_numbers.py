"""The numbers of Arrow columns as arrays, without a step of Python for a value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError

Values = NDArray[Any]


def holds_numbers(kind: Any) -> bool:
    """Whether a type is that of numbers, or of lists of them."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return holds_numbers(kind.value_type)
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def column_numbers(column: Any, file: str, name: str, first_row: int = 0) -> Values:
    """The numbers of a column: one for each row, or a row of them where it holds lists."""
    kind = column.type
    if column.null_count:
        row = first_row + pc.index(column.is_null(), True).as_py()
        raise DataError.at("is null; fill it in, or leave the row out", file=file, row=row, column=name)
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
        raise DataError.at("holds a null in its list; fill it in", file=file, row=row, column=name)
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
