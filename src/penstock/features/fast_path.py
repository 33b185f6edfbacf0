"""Batches of nothing but plain columns, in one pass.

Most numbers of a batch need nothing but to be copied and looked at once: ids that are rows of their table already, and
numbers that are used as they are. Where all features of a run read such columns, this path takes them; where one does
not, or where a value is not as it should be, it declines, and the features parse the batch one by one as ever. So it
can only be faster, never different.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.features.feature import Feature, Float32Array, Int64Array
from penstock.features.id_feature import SparseIds
from penstock.features.raw_feature import Numbers
from penstock.features.text import Rule

_MIN_ROWS = 256
"""Smaller batches gain nothing."""


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """Ids of F features and numbers of D features of B rows, where a batch has them."""

    id_names: tuple[str, ...]
    ids_FB: Int64Array
    number_names: tuple[str, ...]
    numbers_BD: Float32Array


class FastPath:
    def __init__(self, ids: Sequence[SparseIds], numbers: Sequence[Numbers]) -> None:
        self._id_names = tuple(feature.name for feature in ids)
        self._number_names = tuple(feature.name for feature in numbers)
        self._id_columns = tuple(feature.source.column for feature in ids)
        self._number_columns = tuple(feature.source.column for feature in numbers)
        self._num_table_rows = np.array([feature.table.num_rows for feature in ids], np.uint64)
        defaults = [feature.default[0] if len(feature.default) else np.nan for feature in numbers]
        self._nulls = np.array(defaults, np.float32).view(np.uint32)
        self._known: tuple[pa.Schema, ColumnIndices | None] = pa.schema([]), None

    def pack(self, batch: pa.RecordBatch) -> PlainColumns | None:
        if batch.num_rows < _MIN_ROWS:
            return None
        schema, indices = self._known
        if not batch.schema.equals(schema):
            indices = self._find(batch.schema)
            self._known = batch.schema, indices
        return None if indices is None else self._copied(batch, indices)

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

    def _copied(self, batch: pa.RecordBatch, indices: "ColumnIndices") -> PlainColumns | None:
        from penstock.features.plain_kernels import copy_ids, copy_numbers

        ids_FB = np.empty((len(indices[0]), batch.num_rows), np.int64)
        numbers_BD = np.empty((batch.num_rows, len(indices[1])), np.float32)
        # The batch as Arrow's C data interface describes it; the buffers stay as long as this capsule.
        _schema, array = batch.__arrow_c_array__()  # type: ignore[no-untyped-call]
        address = _pointer(array, b"arrow_array")
        is_plain = copy_ids(address, indices[0], self._num_table_rows, ids_FB) and copy_numbers(
            address, indices[1], self._nulls, numbers_BD.view(np.uint32)
        )
        return PlainColumns(self._id_names, ids_FB, self._number_names, numbers_BD) if is_plain else None


ColumnIndices = tuple[Int64Array, Int64Array]
"""Which columns of a schema are ids, and which are numbers."""


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def fast_path_of(features: Sequence[Feature]) -> FastPath | None:
    """The fast path of a run; None where a feature does more than copy, or there is none."""
    ids: list[SparseIds] = []
    numbers: list[Numbers] = []
    for feature in features:
        if (
            isinstance(feature, SparseIds)
            and feature.encoding.rule is Rule.PARSE_INTEGER
            and not feature.table.weighted
        ):
            ids.append(feature)
        elif (
            isinstance(feature, Numbers)
            and feature.width == 1
            and feature.normalizer is None
            and len(feature.default) <= 1
        ):
            numbers.append(feature)
        else:
            return None
    return FastPath(ids, numbers) if features else None
