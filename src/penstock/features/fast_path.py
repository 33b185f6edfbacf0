"""Plain columns of a batch, in one pass.

Most numbers of a batch need nothing but to be copied and looked at once: ids that are rows of their table already, and
numbers that are used as they are. This path takes the features that read such columns, whatever stands beside them;
where a value is not as it should be, it declines, and they are parsed one by one as ever. So it can only be faster,
never different.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.features.encoding import IdEncoding, NumberEncoding
from penstock.features.feature import COLUMN_SIDES, Feature
from penstock.features.strings import Rule
from penstock.features.values import Float32Array, Int64Array

_MIN_ROWS = 256
"""Smaller batches gain nothing."""


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """Ids of F features and numbers of D features of B rows, where a batch has them.

    There is space behind them for what the other features give, so that nothing is copied twice.
    """

    num_rows: int
    id_names: tuple[str, ...]
    ids: Int64Array
    """F * B ids, feature by feature, and the space for others."""

    number_names: tuple[str, ...]
    numbers: Float32Array
    """(B, D and more): the columns of these features come first."""


class FastPath:
    def __init__(self, ids: Sequence[Feature], numbers: Sequence[Feature]) -> None:
        self.names = tuple(feature.name for feature in (*ids, *numbers))
        self._id_names = tuple(feature.name for feature in ids)
        self._number_names = tuple(feature.name for feature in numbers)
        self._id_columns = tuple(feature.inputs[0] for feature in ids)
        self._number_columns = tuple(feature.inputs[0] for feature in numbers)
        tables = [feature.table for feature in ids]
        self._num_table_rows = np.array(
            [0 if table is None else table.num_rows for table in tables], np.uint64
        )
        nulls = [feature.encoding.null for feature in numbers if isinstance(feature.encoding, NumberEncoding)]
        self._nulls = np.array([np.nan if null is None else null for null in nulls], np.float32).view(
            np.uint32
        )
        self._known: tuple[pa.Schema, ColumnIndices | None] = pa.schema([]), None

    def pack(self, batch: pa.RecordBatch, num_ids: int = 0, num_numbers: int = 0) -> PlainColumns | None:
        """The plain columns, with space for `num_ids` ids and `num_numbers` numbers a row behind them."""
        if batch.num_rows < _MIN_ROWS:
            return None
        schema, indices = self._known
        if not batch.schema.equals(schema):
            indices = self._find(batch.schema)
            self._known = batch.schema, indices
        return None if indices is None else self._copied(batch, indices, num_ids, num_numbers)

    def warm(self) -> None:
        nothing = np.zeros(0, np.int64)
        self._copied(pa.record_batch({"x": pa.array([], pa.int64())}), (nothing, nothing))

    def _find(self, schema: pa.Schema) -> "ColumnIndices | None":
        """Which columns the features read; None where one is not of the type that can be copied."""
        ids = [schema.get_field_index(name) for name in self._id_columns]
        numbers = [schema.get_field_index(name) for name in self._number_columns]
        wanted = [(index, pa.int64()) for index in ids] + [(index, pa.float32()) for index in numbers]
        if any(index < 0 or schema.field(index).type != kind for index, kind in wanted):
            return None
        return np.array(ids, np.int64), np.array(numbers, np.int64)

    def _copied(
        self, batch: pa.RecordBatch, indices: "ColumnIndices", num_ids: int = 0, num_numbers: int = 0
    ) -> PlainColumns | None:
        from penstock.features.plain_kernels import copy_ids, copy_numbers

        num_rows, num_plain_ids = batch.num_rows, len(indices[0]) * batch.num_rows
        ids = np.empty(num_plain_ids + num_ids, np.int64)
        numbers = np.empty((num_rows, len(indices[1]) + num_numbers), np.float32)
        # The batch as Arrow's C data interface describes it; the buffers stay as long as this capsule.
        _schema, array = batch.__arrow_c_array__()  # type: ignore[no-untyped-call]
        address = _pointer(array, b"arrow_array")
        ids_FB = ids[:num_plain_ids].reshape(len(indices[0]), num_rows)
        is_plain = copy_ids(address, indices[0], self._num_table_rows, ids_FB) and copy_numbers(
            address, indices[1], self._nulls, numbers.view(np.uint32)
        )
        return PlainColumns(num_rows, self._id_names, ids, self._number_names, numbers) if is_plain else None


ColumnIndices = tuple[Int64Array, Int64Array]
"""Which columns of a schema are ids, and which are numbers."""


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def fast_path_of(features: Sequence[Feature]) -> FastPath | None:
    """The path of all features that only copy a column of a row; None where there is none."""
    ids: list[Feature] = []
    numbers: list[Feature] = []
    for feature in features:
        [*sources] = feature.sources
        is_plain = len(sources) == 1 and sources[0].side in COLUMN_SIDES and feature.transform is None
        if not is_plain or feature.sequence is not None or feature.is_stub:
            continue
        match feature.encoding:
            case IdEncoding(rule=Rule.PARSE_INTEGER) if (
                feature.table is not None and not feature.table.weighted
            ):
                ids.append(feature)
            case NumberEncoding(width=1, normalizer=None, boundaries=None):
                numbers.append(feature)
    return FastPath(ids, numbers) if ids or numbers else None
