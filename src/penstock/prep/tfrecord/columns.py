"""Arrow columns -> the three forms that a tf.train.Feature can hold: int64, float32 and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.prep.tfrecord.encode import NUM_PARTS
from penstock.readers.tfrecord.wire import BYTES_KIND, FLOAT_KIND, INT64_KIND

_PLAIN = {INT64_KIND: pa.int64(), FLOAT_KIND: pa.float32(), BYTES_KIND: pa.binary()}
_USABLE = "integers, bools, floats, strings, bytes, and lists of these"


@dataclass(frozen=True, slots=True)
class EncodableColumn:
    """A column as `encode` takes it, and the arrays that its addresses point into."""

    kind: int
    key: NDArray[np.uint8]
    present: NDArray[np.uint8] | None
    """For each row whether it has the feature; None: all have."""
    row_offsets: NDArray[np.int32] | None
    """None: each row has one value."""
    values: NDArray[Any]
    value_offsets: NDArray[np.int32] | None
    """Of texts."""

    @property
    def parts(self) -> list[int]:
        """Its row of the table of columns."""
        arrays = (self.present, self.row_offsets, self.values, self.value_offsets)
        addresses = [0 if array is None else array.ctypes.data for array in arrays]
        return [self.kind, self.key.ctypes.data, len(self.key), *addresses]


def column_table(columns: Sequence[EncodableColumn]) -> NDArray[np.int64]:
    """What `encode` takes; the columns must be kept as long as it is used."""
    return np.array([column.parts for column in columns], np.int64).reshape(-1, NUM_PARTS)


def encodable_kind(value_type: Any) -> int | None:
    """Which list holds values of a type, or lists of them; None: no list does."""
    types = pa.types
    if is_list(value_type):
        return None if is_list(value_type.value_type) else encodable_kind(value_type.value_type)
    if types.is_dictionary(value_type):
        return encodable_kind(value_type.value_type)
    if types.is_integer(value_type) or types.is_boolean(value_type):
        return INT64_KIND
    if types.is_floating(value_type):
        return FLOAT_KIND
    is_text = (
        types.is_string(value_type) or types.is_large_string(value_type) or types.is_string_view(value_type)
    )
    is_binary = (
        types.is_binary(value_type) or types.is_large_binary(value_type) or types.is_binary_view(value_type)
    )
    return BYTES_KIND if is_text or is_binary or types.is_fixed_size_binary(value_type) else None


def is_list(value_type: Any) -> bool:
    """Whether values are lists."""
    types = pa.types
    return bool(
        types.is_list(value_type) or types.is_large_list(value_type) or types.is_fixed_size_list(value_type)
    )


def check_types(schema: pa.Schema) -> None:
    """Refuse a column that no list holds, before anything is written."""
    for field in schema:
        if encodable_kind(field.type) is None and not pa.types.is_null(field.type):
            raise DataError.at(
                f"has type {field.type}, which a tf.train.Example cannot hold; it holds {_USABLE}: cast it first",
                column=field.name,
            )


def encodable(name: str, array: Any) -> EncodableColumn | None:
    """A column as `encode` takes it; None: no row has a value."""
    kind = encodable_kind(array.type)
    if kind is None or array.null_count == len(array):
        return None
    present = pc.is_valid(array).to_numpy(zero_copy_only=False).view(np.uint8) if array.null_count else None
    row_offsets = None
    if is_list(array.type):
        array, row_offsets = _items(name, array)
    values, value_offsets = _values(name, array, kind)
    return EncodableColumn(
        kind, np.frombuffer(name.encode(), np.uint8), present, row_offsets, values, value_offsets
    )


def _items(name: str, array: Any) -> tuple[Any, NDArray[np.int32]]:
    """The values of all rows that have some, and which are whose."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    items = array.flatten()
    if items.null_count:
        raise DataError.at("has a null inside a list, which a tf.train.Example cannot hold", column=name)
    return items, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _values(name: str, array: Any, kind: int) -> tuple[NDArray[Any], NDArray[np.int32] | None]:
    try:
        plain = _plain(array, kind)
    except pa.ArrowInvalid as error:
        raise DataError.at(f"cannot be written as {_PLAIN[kind]}: {error}", column=name) from error
    if kind != BYTES_KIND:
        return np.ascontiguousarray(plain.fill_null(0).to_numpy(zero_copy_only=False)), None
    _, offsets, data = plain.buffers()
    value_offsets = np.frombuffer(offsets, np.int32)[plain.offset : plain.offset + len(plain) + 1]
    return np.frombuffer(data or b"", np.uint8), value_offsets


def _plain(array: Any, kind: int) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.binary())
    return array.cast(_PLAIN[kind])
