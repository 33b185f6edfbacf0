"""Equal values have equal hashes, whatever stands around them; different values have different ones."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.readers.hashes import value_hashes

EVERY_TYPE = {
    "uint64": pa.array([1, 2**64 - 1, None, 2], pa.uint64()),
    "float": pa.array([1.5, -1.5, None, 0.0], pa.float32()),
    "half": pa.array(np.array([1.5, -1.5, 2.5, 0.0], np.float16)),
    "bool": pa.array([True, False, None]),
    "string": pa.array(["a", "b", None, "", "ab", "ba", "aa"]),
    "binary": pa.array([b"\x00", b"\x00\x00", None, b""]),
    "fixed_binary": pa.array([b"ab", b"cd", None], pa.binary(2)),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "decimal": pa.array([Decimal("1.5"), Decimal("-1.5"), None]),
    "date": pa.array([date(2024, 1, 1), date(2024, 1, 2), None]),
    "timestamp": pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2), None]),
    "list": pa.array([[1], [1, 1], [], None, [None], [1, 2], [2, 1]]),
    "list of lists": pa.array([[[1], [2]], [[1, 2]], [[], [1, 2]], None, []]),
    "fixed_list": pa.array([[1, 2], [2, 1], None], pa.list_(pa.int64(), 2)),
    "map": pa.array([[("a", 1)], [("a", 2)], [("b", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"a": 1, "b": 2}, {"a": 2, "b": 1}, None, {"a": None, "b": None}]),
}


@pytest.mark.parametrize("values", EVERY_TYPE.values(), ids=EVERY_TYPE)
def test_different_values_of_every_type(values):
    assert len(set(value_hashes(values).tolist())) == len(values)


@pytest.mark.parametrize("values", EVERY_TYPE.values(), ids=EVERY_TYPE)
def test_a_hash_does_not_depend_on_where_the_value_stands(values):
    order = np.arange(len(values))[::-1]

    assert value_hashes(values.take(order)).tolist() == value_hashes(values)[::-1].tolist()
    assert value_hashes(values.slice(1)).tolist() == value_hashes(values)[1:].tolist()
    assert value_hashes(values.slice(0, 0)).tolist() == []


def test_a_type_without_values_to_compare():
    values = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])

    with pytest.raises(DataError, match=r"values of type .*union.* cannot be compared; leave the column out"):
        value_hashes(values)
