"""Arrow columns of every type as values and lengths."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.features.arrow_values import read_values
from penstock.features.values import Strings

SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]


def plain(array):
    """Values and lengths as Python lists; texts as strings."""
    cells = read_values(array, "c")
    if not isinstance(cells.items, Strings):
        return cells.items.tolist(), cells.lengths.tolist()
    return [cells.items[index] for index in range(len(cells.items))], cells.lengths.tolist()


@pytest.mark.parametrize("kind", [*SIGNED, *UNSIGNED], ids=str)
def test_integers_of_every_width(kind):
    array = pa.array([9, 1, None, 3], kind)

    assert plain(array) == ([9, 1, 3], [1, 1, 0, 1])
    assert plain(array.slice(1)) == ([1, 3], [1, 0, 1])
    assert read_values(array, "c").items.dtype == np.int64


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_texts_are_empty_where_they_are_null(kind):
    array = pa.array(["zz", "ab", None, "é"], pa.string()).cast(kind)

    assert plain(array.slice(1)) == (["ab", "", "é"], [1, 1, 1])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([True, None, False]), [1, 0]),
        (pa.array([Decimal(7), None, Decimal(8)], pa.decimal128(5)), [7, 8]),
        (pa.array([Decimal("1.25"), None, Decimal(2)], pa.decimal256(5, 2)), [1.25, 2.0]),
        (pa.array([date(1970, 1, 3), None, date(1969, 12, 31)], pa.date32()), [2, -1]),
        (pa.array([2_500_000, None, -500_000], pa.timestamp("us")), [2, -1]),
        (
            pa.array([datetime(1970, 1, 1, 1, tzinfo=UTC), None, None], pa.timestamp("ns", "Asia/Tokyo")),
            [3600],
        ),
        (pa.array([None, None, None]), []),
    ],
    ids=lambda part: str(part.type) if isinstance(part, pa.Array) else "",
)
def test_types_that_become_numbers(values, expected):
    assert plain(values)[0] == expected


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_view(pa.int16()), pa.list_(pa.int64(), 2)],
    ids=str,
)
def test_lists(kind):
    array = pa.array([[8, 9], [1, 2], None, [3, 4]], kind)

    assert plain(array) == ([8, 9, 1, 2, 3, 4], [2, 2, 0, 2])
    assert plain(array.slice(1)) == ([1, 2, 3, 4], [2, 0, 2])


def test_lists_of_text_keep_each_element_whole():
    cells = read_values(pa.array([["a|b", "c"], None, []]), "c")

    assert cells.separators == ()
    assert plain(pa.array([["a|b", "c"], None, []])) == (["a|b", "c"], [2, 0, 0])


def test_integers_are_views_of_arrow_memory():
    array = pa.array(np.arange(5))

    values = read_values(array.slice(2), "c").items

    assert values.ctypes.data == array.buffers()[1].address + 16


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.struct([("x", pa.int64())]), pa.time32("s")], ids=str)
def test_other_types_say_what_would_be_usable(kind):
    with pytest.raises(
        DataError, match=r"column 'c': is of type .*, which cannot be a feature\. Usable: integers"
    ):
        read_values(pa.nulls(1, kind), "c")
