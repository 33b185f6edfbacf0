"""Arrow columns as NumPy arrays and back: types, views, lists, and rows without a value."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.data.arrow_numpy import Ragged


def column(values, **fills):
    """What a batch has for one column of two or more."""
    table = pa.table({"c": values, "other": list(range(len(values)))})
    [batch] = penstock.from_arrays(table).fill_nulls(fills).batch(len(values))
    return batch["c"]


@pytest.mark.parametrize("kind", ["uint16", "int64", "float32"])
def test_numbers_keep_their_type_and_are_views(kind):
    values = np.arange(3, dtype=kind)

    found = column(pa.array(values))

    assert (found.dtype, found.tolist()) == (np.dtype(kind), [0, 1, 2])
    assert np.shares_memory(found, values)


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (pa.array([True, False]), "bool", [True, False]),
        (pa.array(["a", "bc"]), "object", ["a", "bc"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "object", ["a", "b", "a"]),
        (pa.array([Decimal("1.5"), Decimal("2.25")]), "float64", [1.5, 2.25]),
        (pa.array([60], pa.timestamp("s")), "datetime64[s]", [datetime.datetime(1970, 1, 1, 0, 1)]),
        (pa.array([0, 1], pa.date32()), "datetime64[D]", [datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)]),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)), "int32", [[1, 2], [3, 4]]),
        (pa.array([["a", "b"]], pa.list_(pa.string(), 2)), "object", [["a", "b"]]),
    ],
    ids=["bool", "string", "dictionary", "decimal", "timestamp", "date", "fixed list", "fixed list of strings"],
)  # fmt: skip
def test_types(values, dtype, expected):
    found = column(values)

    assert (found.dtype, found.tolist()) == (np.dtype(dtype), expected)


@pytest.mark.parametrize(
    "lists",
    [[[1, 2], [], [3]], [["a"], ["b", "c"]], [[1.5], None, []], [[[1], [2, 3]], [], [[4]]]],
    ids=["integers", "strings", "null", "lists"],
)
def test_lists_are_ragged(lists):
    found = column(pa.array(lists))

    assert isinstance(found, Ragged)
    assert found.tolist() == [[] if values is None else values for values in lists]


@pytest.mark.parametrize(
    ("values", "is_missing"),
    [
        (pa.array([1.5, None], pa.float32()), np.isnan),
        (pa.array([0, None], pa.timestamp("us")), np.isnat),
        (pa.array(["a", None]), lambda texts: np.equal(texts, None)),
        (pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)), lambda rows: np.isnan(rows).all(axis=1)),
    ],
    ids=["float", "timestamp", "string", "fixed list"],
)
def test_no_value_is_the_one_that_the_type_has_for_it(values, is_missing):
    assert is_missing(column(values)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (pa.array([1, None]), [1.0, None]),
        (pa.array([True, None]), [1.0, None]),
        (pa.array([[1], [2, None]]), [[1.0], [2.0, None]]),
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), [[1.0, 2.0], [None, None]]),
        (pa.array([[1, 2], [3, None]], pa.list_(pa.int32(), 2)), [[1.0, 2.0], [3.0, None]]),
    ],
    ids=["integer", "bool", "in a list", "fixed list", "in a fixed list"],
)
def test_integers_without_a_value_are_floats_and_that_is_told_once(values, numbers, caplog):
    dataset = penstock.from_arrays(pa.table({"c": values})).batch(2).epochs(2)

    first, second = (batch["c"].tolist() for batch in dataset)

    assert repr(first) == repr(second) == repr(numbers).replace("None", "nan")
    [warning] = caplog.messages
    assert warning == (
        "column 'c' lacks values, first in the batch that begins with row 0 of arrays in memory: it is float64 there, "
        f"with NaN; keep {values.type} with .fill_nulls(c=...)"
    )


def test_integers_that_floats_would_change_are_an_error():
    with pytest.raises(penstock.DataError) as told:
        column(pa.array([2**60 + 1, None]))

    assert str(told.value) == (
        "arrays in memory: row 1: column 'c': has no value, and float64, which has NaN, does not hold its int64; "
        "say what to take: .fill_nulls(c=...)"
    )


def test_what_is_no_array_says_what_to_do():
    table = pa.table({"c": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "y": [1]})

    with pytest.raises(
        penstock.DataError, match=r"^column 'c': is of type map<string, int64>, which is no array; leave"
    ):
        list(penstock.from_arrays(table).batch(1))
    assert [batch["y"].tolist() for batch in penstock.from_arrays(table).columns(["y"]).batch(1)] == [[1]]
    [batch] = penstock.from_arrays(table).batch(1).to_arrow()
    assert batch["c"].to_pylist() == [[("a", 1)]]


TABLE = pa.table({"name": ["ann", "bob", None], "clicks": [[1, 2], [], [3]], "y": [1, 2, 3]})


def test_record_batches_of_what_a_map_gave():
    def longer(batch):
        matrix = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
        return {"y": batch["y"] + 1, "matrix": matrix, "clicks": batch["clicks"], "name": batch["name"]}

    [batch] = penstock.from_arrays(TABLE).batch(3).map(longer).to_arrow()

    assert batch["y"].to_pylist() == [2, 3, 4]
    assert batch["matrix"].to_pylist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert batch["clicks"].to_pylist() == [[1, 2], [], [3]]
    assert batch["name"].to_pylist() == ["ann", "bob", None]


CLICKS = Ragged(np.array([7, 8, 9, 4]), np.array([0, 2, 2, 3, 4]))


def test_rows_are_views():
    assert len(CLICKS) == 4
    assert [row.tolist() for row in CLICKS] == CLICKS.tolist() == [[7, 8], [], [9], [4]]
    assert CLICKS[-1].tolist() == [4]
    assert np.shares_memory(CLICKS[0], CLICKS.values)
    assert CLICKS.lengths.tolist() == [2, 0, 1, 1]


def test_lists_of_lists():
    visits = Ragged(CLICKS, np.array([0, 1, 4]))

    assert visits.tolist() == [[[7, 8]], [[], [9], [4]]]
    with pytest.raises(TypeError, match="lists of lists have no rectangle"):
        visits.padded()
