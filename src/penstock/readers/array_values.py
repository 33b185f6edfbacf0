"""NumPy values -> Arrow arrays; without a copy where both lay them out alike."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import MIB

Values = NDArray[Any]
DType = np.dtype[Any]

BLOCK_BYTES = 8 * MIB
"""About what the wanted columns of a block take: large enough to be read fast, small enough to be mixed well."""
_STRING_KINDS = "US"
_TYPE_OF_CODE: dict[str, Any] = {
    **{f"{kind}{size}": getattr(pa, f"{name}{8 * size}")() for kind, name in (("i", "int"), ("u", "uint"))
       for size in (1, 2, 4, 8)},
    "f2": pa.float32(),
    "f4": pa.float32(),
    "f8": pa.float64(),
    "b1": pa.bool_(),
}  # fmt: skip
_OFFSET_BYTES = 4
_LENGTH_BYTES = 8
_FOREIGN_ORDER = ">" if sys.byteorder == "little" else "<"


def arrow_type(dtype: DType, shape: tuple[int, ...], file: str, column: str) -> Any:
    """The type of a column: a scalar, or a list of fixed size for what stands in one row of more axes."""
    if not shape:
        raise DataError.at(
            "is a single value; an array needs rows, which are its first axis", file=file, column=column
        )
    item_type: Any = pa.string() if dtype.kind in _STRING_KINDS else _TYPE_OF_CODE.get(dtype.str[1:])
    if item_type is None:
        advice = (
            "which cannot be used; usable are integers, float16 to float64, bool, and texts of fixed width"
        )
        if dtype.hasobject:
            advice = "Python objects, which could run code when they are read; write numbers, or texts of dtype str"
        raise DataError.at(f"has dtype {dtype}, {advice}", file=file, column=column)
    if len(shape) == 1:
        return item_type
    if row_items(shape) == 0:
        raise DataError.at(
            f"has shape {shape}: no values in its rows; leave it out", file=file, column=column
        )
    return pa.list_(item_type, row_items(shape))


def row_items(shape: tuple[int, ...]) -> int:
    """Values in one row."""
    return int(np.prod(shape[1:], dtype=np.int64))


def given_row_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """The most that a row takes as Arrow has it."""
    if dtype.kind in _STRING_KINDS:
        return row_items(shape) * (dtype.itemsize + _OFFSET_BYTES)
    return row_items(shape) * (2 if dtype.str[1:] == "f2" else 1) * dtype.itemsize


def making_row_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """What `to_arrow` takes beyond the values themselves; 0: it gives views of them."""
    if dtype.kind in _STRING_KINDS:
        # Arrow's buffers double while they grow.
        return 2 * given_row_bytes(dtype, shape) + row_items(shape) * _LENGTH_BYTES
    is_converted = dtype.byteorder == _FOREIGN_ORDER or dtype.str[1:] in ("f2", "b1")
    return given_row_bytes(dtype, shape) if is_converted else 0


def to_arrow(values: Values, file: str, column: str, first_row: int) -> "pa.Array[Any]":
    """The rows of an array; inner axes are laid out one behind the other, the last one fastest.

    `first_row` is the number of the first one in the file, for messages.
    """
    flat = values.reshape(-1)
    num_items = row_items(values.shape)
    if values.dtype.kind in _STRING_KINDS:
        items = _strings(flat, file, column, first_row, num_items)
    else:
        if values.dtype.byteorder == _FOREIGN_ORDER:
            flat = flat.astype(values.dtype.newbyteorder("="))
        items = pa.array(flat.astype(np.float32) if values.dtype.str[1:] == "f2" else flat)
    return items if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(items, num_items)


def _strings(flat: Values, file: str, column: str, first_row: int, num_items: int) -> "pa.Array[Any]":
    """Strings of fixed width, without the zeros behind them."""
    code_type = np.uint32 if flat.dtype.kind == "U" else np.uint8
    codes = np.ascontiguousarray(flat).view(code_type) if flat.dtype.itemsize else np.empty(0, code_type)
    try:
        if np.count_nonzero(codes) == np.strings.str_len(flat).sum():
            return pa.array(flat).cast(pa.string())
    except pa.ArrowInvalid:
        pass
    # The first string that cannot be read is looked for value by value: reading ends here.
    for index, text in enumerate(flat.tolist()):
        problem = None
        try:
            encoded = text.encode() if isinstance(text, str) else text
            encoded.decode()
            problem = "has a zero character inside; texts end at it" if b"\0" in encoded else None
        except UnicodeError:
            problem = "is not UTF-8; write texts as dtype str"
        if problem is not None:
            row = first_row + index // max(1, num_items)
            raise DataError.at(problem, file=file, row=row, column=column, value=text)
    raise DataError.at("has texts that cannot be read", file=file, column=column)


def check_lengths(num_rows: Mapping[str, int]) -> int:
    """The number of rows that all arrays have; they are given by what to call them in messages."""
    first_name, first = next(iter(num_rows.items()))
    for name, number in num_rows.items():
        if number != first:
            raise DataError(
                f"{first_name} has {first} rows but {name} has {number}; arrays that are read together need equal "
                "lengths"
            )
    return first


def row_ranges(num_rows: int, row_bytes: int, is_stream: bool = False) -> Iterator[tuple[int, int]]:
    """(first row, number of rows) of each block."""
    block_rows = max(1, num_rows if is_stream else BLOCK_BYTES // max(1, row_bytes))
    return ((first, min(block_rows, num_rows - first)) for first in range(0, num_rows, block_rows))
