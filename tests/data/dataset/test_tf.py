"""A Dataset as a tf.data.Dataset; needs TensorFlow, which is an extra."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock
from tests.data.dataset.samples import numbered

tf = pytest.importorskip("tensorflow", reason="TensorFlow is an extra: pip install 'penstock[tf]'")


def test_texts_lists_and_times():
    table = pa.table(
        {
            "name": ["ann", None],
            "clicks": [[1, 2], [3]],
            "visits": [[[1], [2, 3]], []],
            "when": pa.array([5, 7], pa.timestamp("s")),
        }
    )
    dataset = penstock.from_arrays(table).batch(2).to_tf()

    [batch] = dataset

    assert batch["name"].numpy().tolist() == [b"ann", b""]
    assert batch["clicks"].to_list() == [[1, 2], [3]]
    assert batch["visits"].to_list() == [[[1], [2, 3]], []]
    assert batch["when"].numpy().tolist() == [5, 7]
    assert dataset.element_spec["clicks"] == tf.RaggedTensorSpec((None, None), tf.int64, 1, tf.int64)


def test_rows_with_lists_and_texts():
    dataset = penstock.from_arrays({"name": ["ann", "bob"], "clicks": [[1, 2], [3]]}).to_tf()

    assert [row["clicks"].numpy().tolist() for row in dataset] == [[1, 2], [3]]
    assert [row["name"].numpy() for row in dataset] == [b"ann", b"bob"]


def test_what_a_map_gives_back_is_seen_from_the_first_batch():
    dataset = (
        numbered(5)
        .batch(2)
        .map(lambda batch: {"sum": batch["x"].sum(axis=1), "name": batch["y"].astype(str)})
    )

    batches = list(dataset.to_tf())

    assert dataset.to_tf().element_spec["sum"] == tf.TensorSpec((None,), tf.float32)
    assert [batch["sum"].numpy().tolist() for batch in batches] == [[0, 11], [22, 33], [44]]
    assert batches[0]["name"].numpy().tolist() == [b"0", b"1"]


def test_the_number_of_batches_is_known():
    assert numbered(5).batch(2).epochs(3).to_tf().cardinality() == 9
    assert numbered(5).batch(2).epochs().to_tf().cardinality() == tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize(("values", "kind"), [([1, None], "int64"), ([True, None], "bool")])
def test_a_type_without_a_value_for_none_is_told(values, kind):
    dataset = penstock.from_arrays(pa.table({"age": values})).batch(2)

    with pytest.raises(
        tf.errors.UnknownError, match=f"'age': lacks values, which {kind} cannot say; say what to"
    ):
        list(dataset.to_tf())


def test_rows_that_are_left_out():
    part = (
        numbered(9).filter(pc.field("y") > 2).batch(4).map(lambda batch: {"y": batch["y"][batch["y"] != 4]})
    )

    assert [batch["y"].numpy().tolist() for batch in part.to_tf()] == [[3, 5, 6], [7, 8]]
