"""NumPy values -> Arrow arrays; without a copy where both lay them out alike."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import DataError

Values = NDArray[Any]
DType = np.dtype[Any]

_TEXT_KINDS = "US"
_TYPE_OF_CODE: dict[str, Any] = {
    "i1": pa.int8(),
    "i2": pa.int16(),
    "i4": pa.int32(),
    "i8": pa.int64(),
    "u1": pa.uint8(),
    "u2": pa.uint16(),
    "u4": pa.uint32(),
    "u8": pa.uint64(),
    "f2": pa.float32(),
    "f4": pa.float32(),
    "f8": pa.float64(),
    "b1": pa.bool_(),
}
_OFFSET_BYTES = 4
_LENGTH_BYTES = 8
_FOREIGN_ORDER = ">" if sys.byteorder == "little" else "<"


@dataclass(frozen=True, slots=True)
class Place:
    """What the values are called when they are wrong, and the number of their first row there."""

    file: str
    column: str
    first_row: int


def arrow_type(dtype: DType, shape: tuple[int, ...], file: str, column: str) -> Any:
    """The type of a column: a scalar, or a list of fixed size for what stands in one row of more axes."""
    if not shape:
        raise DataError.at(
            "is a single value; an array needs rows, which are its first axis", file=file, column=column
        )
    item_type: Any = pa.string() if dtype.kind in _TEXT_KINDS else _TYPE_OF_CODE.get(dtype.str[1:])
    if item_type is None:
        raise DataError.at(f"has dtype {dtype}, {_advice(dtype)}", file=file, column=column)
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
    if dtype.kind in _TEXT_KINDS:
        return row_items(shape) * (dtype.itemsize + _OFFSET_BYTES)
    return row_items(shape) * (2 if dtype.str[1:] == "f2" else 1) * dtype.itemsize


def making_row_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """What `to_arrow` takes beyond the values themselves; 0: it gives views of them."""
    if dtype.kind in _TEXT_KINDS:
        # Arrow's buffers double while they grow.
        return 2 * given_row_bytes(dtype, shape) + row_items(shape) * _LENGTH_BYTES
    return given_row_bytes(dtype, shape) if _is_converted(dtype) else 0


def to_arrow(values: Values, place: Place) -> "pa.Array[Any]":
    """The rows of an array; inner axes are laid out one behind the other, the last one fastest."""
    flat = values.reshape(-1)
    if values.dtype.byteorder == _FOREIGN_ORDER and values.dtype.kind not in _TEXT_KINDS:
        flat = flat.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind == "f" and values.dtype.itemsize == 2:
        flat = flat.astype(np.float32)
    num_items = row_items(values.shape)
    items = _texts(flat, place, num_items) if values.dtype.kind in _TEXT_KINDS else pa.array(flat)
    return items if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(items, num_items)


def _is_converted(dtype: DType) -> bool:
    return dtype.byteorder == _FOREIGN_ORDER or dtype.str[1:] in ("f2", "b1") or dtype.kind in _TEXT_KINDS


def _advice(dtype: DType) -> str:
    if dtype.hasobject:
        return "Python objects, which could run code when they are read; write numbers, or texts of dtype str"
    usable = "integers, float16 to float64, bool, and texts of fixed width"
    return f"which cannot be used; usable are {usable}"


def _texts(flat: Values, place: Place, num_items: int) -> "pa.Array[Any]":
    """Texts of fixed width, without the zeros behind them."""
    code_type = np.uint32 if flat.dtype.kind == "U" else np.uint8
    codes = np.ascontiguousarray(flat).view(code_type) if flat.dtype.itemsize else np.empty(0, code_type)
    if np.count_nonzero(codes) != np.strings.str_len(flat).sum():
        raise _bad_text(flat, place, num_items)
    try:
        return pa.array(flat).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise _bad_text(flat, place, num_items) from error


def _bad_text(flat: Values, place: Place, num_items: int) -> DataError:
    """The first text that cannot be read, looked for value by value: reading ends here."""
    for index, text in enumerate(flat.tolist()):
        problem = _problem_of(text)
        if problem is not None:
            row = place.first_row + index // max(1, num_items)
            return DataError.at(problem, file=place.file, row=row, column=place.column, value=text)
    return DataError.at("has texts that cannot be read", file=place.file, column=place.column)


def _problem_of(text: str | bytes) -> str | None:
    try:
        encoded = text.encode() if isinstance(text, str) else text
        encoded.decode()
    except UnicodeError:
        return "is not UTF-8; write texts as dtype str"
    return "has a zero character inside; texts end at it" if b"\0" in encoded else None
