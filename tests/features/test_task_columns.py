"""Masks and sessions: what is read, and what is refused."""

import pyarrow as pa
import pytest

from penstock.features.feature import BadValue
from penstock.features.parser import Parser, read_mask, read_sessions


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.list_(pa.int8(), 3), pa.list_(pa.float64())])
def test_a_mask_has_a_number_for_each_class(kind):
    batch = pa.record_batch({"allowed": pa.array([[1, 0, 1], [0, 0, 1]], kind)})

    mask = read_mask(batch, "allowed", 3)

    assert (mask.dtype.name, mask.tolist()) == ("int8", [[1, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([[1, 1], [1]], "has 1 values; a mask has one for each of 2 classes"),
        ([[1, 1], None], "has 0 values; a mask has one for each of 2 classes"),
        ([[1, 1], [0, 2]], "is no mask: zeros and ones"),
        ([[1, 1], [0, 0]], "masks every class; leave one at least"),
    ],
)
def test_wrong_masks_are_told_with_their_row(rows, problem):
    with pytest.raises(BadValue) as caught:
        read_mask(pa.record_batch({"allowed": rows}), "allowed", 2)

    assert (caught.value.row, caught.value.problem) == (1, problem)


@pytest.mark.parametrize(
    "values", [["b", "a", "b"], [9, 4, 9], pa.array(["b", "a", "b"]).dictionary_encode()]
)
def test_rows_of_equal_values_are_one_session(values):
    first, second, third = read_sessions(pa.record_batch({"visit": values}), "visit").tolist()

    assert first == third != second


def test_a_parser_reads_masks_always_and_sessions_with_labels():
    parser = Parser([], ["click"], masks={"allowed": 2}, sessions={"visit": "visit_id"})
    batch = pa.record_batch({"click": [1, 0], "allowed": [[1, 0], [1, 1]], "visit_id": ["x", "x"]})

    assert parser.columns == ("click", "allowed", "visit_id")
    assert {name: values.tolist() for name, values in parser.parse(batch).side.items()} == {
        "allowed": [[1, 0], [1, 1]],
        "visit": [0, 0],
    }
    assert list(parser.parse(batch, with_labels=False).side) == ["allowed"]
