import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.features.parser import Parser, read_mask, read_sessions
from penstock.features.values import BadValue
from penstock.readers.stream import ROW_COLUMN


def batch_of(**columns):
    return pa.record_batch(columns)


def test_a_bad_value_is_told_with_its_file_and_the_row_in_that_file(one_feature):
    parser = Parser(
        [one_feature("id_feature", "FG_NORMAL", num_buckets=10)], file_paths=["a.parquet", "b.parquet"]
    )
    shuffled = batch_of(f=[1, 2, 99], **{ROW_COLUMN: [5, (1 << 40) | 3, (1 << 40) | 17]})

    with pytest.raises(DataError) as caught:
        parser.parse(shuffled)

    assert str(caught.value) == (
        "b.parquet: row 17: column 'f': value 99 is outside 0 to 9, the ids of feature 'f'"
    )


@pytest.mark.parametrize(
    ("column", "dtype", "expected"),
    [
        (pa.array([1, 0], pa.int8()), np.int64, [1, 0]),
        (pa.array([0.5, 1.0], pa.float64()), np.float32, [0.5, 1.0]),
        (pa.array([1, 0]).dictionary_encode(), np.int64, [1, 0]),
    ],
    ids=str,
)
def test_labels(column, dtype, expected):
    label = Parser([], ["y"]).parse(batch_of(y=column)).labels["y"]

    assert label.dtype == dtype
    assert label.tolist() == expected


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array([1.0, float("nan")]), "row 1: column 'y': value nan is no label; every row needs one"),
        (pa.array([[1], [0]]), "column 'y': is a list<element: int64>; this label is one number in each row"),
    ],
    ids=["nan", "list"],
)
def test_bad_labels(column, problem):
    with pytest.raises(DataError) as caught:
        Parser([], ["y"], single_labels=["y"]).parse(batch_of(y=column))

    assert str(caught.value).replace("<item:", "<element:") == problem


@pytest.mark.parametrize(
    ("rows", "dtype", "values"),
    [
        ([[1, 0], [], None, [1]], np.int64, [1, 0, 1]),
        ([[0.5], [], None, [1.0, 2.0]], np.float32, [0.5, 1.0, 2.0]),
    ],
)
def test_labels_may_be_lists(rows, dtype, values):
    found, lengths = Parser([], ["y"]).parse(batch_of(y=rows)).jagged_labels["y"]

    assert (found.dtype, found.tolist()) == (dtype, values)
    assert lengths.tolist() == [len(row or ()) for row in rows]


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_bad_sample_weights(weight):
    with pytest.raises(
        DataError, match=f"row 1: column 'w': value {weight} is no sample weight: finite and >= 0"
    ):
        Parser([], [], ["w"]).parse(batch_of(w=[1.0, weight]))


def test_text_columns_are_those_that_are_hashed_or_looked_up(one_feature):
    features = [
        one_feature("id_feature", "FG_NORMAL", expression="user:zip", hash_bucket_size=10),
        one_feature("id_feature", "FG_NORMAL", expression="user:city", vocab_list=["a"]),
        one_feature("id_feature", "FG_NORMAL", expression="user:number", num_buckets=10),
        one_feature("id_feature", "FG_NONE", hash_bucket_size=10),
        one_feature("raw_feature", "FG_NORMAL", expression="user:age"),
    ]

    assert Parser(features).text_columns == ("zip", "city")


NUMBERS_ONLY = """
import sys
import pyarrow as pa
from penstock.features import build_features
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection

fields = {"feature_name": "f", "expression": "user:f", "embedding_dim": 4, "num_buckets": 10}
feature = build_features([FeatureConfig.model_validate({"id_feature": fields})], ParsingSection())[0]
Parser([feature]).parse(pa.record_batch({"f": [[1, 2], [], [3]]}))
sys.exit("numba" in sys.modules or "torch" in sys.modules)
"""


def test_columns_of_numbers_do_not_load_the_kernels():
    assert subprocess.run([sys.executable, "-c", NUMBERS_ONLY], check=False).returncode == 0


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


def test_a_parser_reads_masks_and_sessions():
    parser = Parser([], ["click"], masks={"allowed": 2}, sessions={"visit": "visit_id"})
    batch = pa.record_batch({"click": [1, 0], "allowed": [[1, 0], [1, 1]], "visit_id": ["x", "x"]})

    assert parser.columns == ("click", "allowed", "visit_id")
    assert {name: values.tolist() for name, values in parser.parse(batch).side.items()} == {
        "allowed": [[1, 0], [1, 1]],
        "visit": [0, 0],
    }
