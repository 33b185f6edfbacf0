"""Batches of nothing but plain columns, in one pass.

Most numbers of a batch need nothing but to be copied and looked at once: ids that are rows of their table already, and
numbers that are used as they are. Where all features of a run read such columns, this lane takes them; where one does
not, or where a value is not as it should be, it declines, and the features parse the batch one by one as ever. So it
can only be faster, never different.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.features.columns import Float32Array, Int64Array
from penstock.features.feature import Feature
from penstock.features.id_encoding import GivenRows
from penstock.features.id_feature import SparseIds
from penstock.features.raw_feature import DenseNumbers

_LEAST_ROWS = 256
"""Smaller batches gain nothing."""


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """Ids of F features and numbers of D features of B rows, where a batch has them."""

    id_names: tuple[str, ...]
    ids_FB: Int64Array
    number_names: tuple[str, ...]
    numbers_BD: Float32Array


class PlainLane:
    """Packs the plain columns of record batches; `lane_of` says whether there is one."""

    def __init__(self, ids: Sequence[SparseIds], numbers: Sequence[DenseNumbers]) -> None:
        self._ids, self._numbers = tuple(ids), tuple(numbers)
        self._id_names = tuple(feature.name for feature in ids)
        self._number_names = tuple(feature.name for feature in numbers)
        self._num_table_rows = np.array([feature.table.num_rows for feature in ids], np.uint64)
        defaults = [
            feature.numbers.default[0] if len(feature.numbers.default) else np.nan for feature in numbers
        ]
        self._nulls = np.array(defaults, np.float32).view(np.uint32)

    def pack(self, batch: pa.RecordBatch) -> PlainColumns | None:
        """The columns of a batch; None where a feature has to look at it."""
        if batch.num_rows < _LEAST_ROWS:
            return None
        ids = [_ids_address(batch.column(feature.source.column)) for feature in self._ids]
        numbers = [_numbers_place(batch.column(feature.numbers.source.column)) for feature in self._numbers]
        if None in ids or None in numbers:
            return None
        return self._copied(batch.num_rows, np.array(ids, np.int64), _table(numbers))

    def warm(self) -> None:
        """Load and compile the kernels."""
        self._copied(0, np.zeros(len(self._ids), np.int64), _table([(0, 0, 0)] * len(self._numbers)))

    def _copied(self, num_rows: int, ids: Int64Array, numbers: NDArray[np.int64]) -> PlainColumns | None:
        from penstock.features.plain_kernels import copy_ids, copy_numbers

        ids_FB = np.empty((len(self._ids), num_rows), np.int64)
        numbers_BD = np.empty((num_rows, len(self._numbers)), np.float32)
        addresses, valid_addresses, first_bits = numbers
        is_plain = copy_ids(ids, self._num_table_rows, ids_FB) and copy_numbers(
            addresses, valid_addresses, first_bits, self._nulls, numbers_BD.view(np.uint32)
        )
        return PlainColumns(self._id_names, ids_FB, self._number_names, numbers_BD) if is_plain else None


def lane_of(features: Sequence[Feature]) -> PlainLane | None:
    """The lane of a run; None where a feature does more than copy."""
    ids = [feature for feature in features if isinstance(feature, SparseIds) and _copies_ids(feature)]
    numbers = [
        feature for feature in features if isinstance(feature, DenseNumbers) and _copies_numbers(feature)
    ]
    return PlainLane(ids, numbers) if len(ids) + len(numbers) == len(features) else None


def _copies_ids(feature: SparseIds) -> bool:
    return isinstance(feature.encoding, GivenRows) and not feature.table.weighted


def _copies_numbers(feature: DenseNumbers) -> bool:
    return feature.width == 1 and feature.numbers.normalizer is None and len(feature.numbers.default) <= 1


def _ids_address(array: Any) -> int | None:
    """Where the first id of an int64 column without nulls stands."""
    if array.type.id != _INT64 or array.null_count:
        return None
    return int(array.buffers()[1].address + 8 * array.offset)


def _numbers_place(array: Any) -> tuple[int, int, int] | None:
    """Where the first number of a float32 column stands, the bits that tell nulls (0: none), and the first of them.

    A null without a default becomes NaN, which the kernel declines.
    """
    if array.type.id != _FLOAT32:
        return None
    valid, values = array.buffers()
    has_nulls = valid is not None and array.null_count
    return int(values.address) + 4 * array.offset, int(valid.address) if has_nulls else 0, array.offset


def _table(places: Sequence[Any]) -> NDArray[np.int64]:
    return np.array(places, np.int64).reshape(-1, 3).T.copy()


_INT64, _FLOAT32 = pa.int64().id, pa.float32().id
