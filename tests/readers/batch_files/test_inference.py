"""The schema that a first sample has: its heads and widths, and types that have its labels."""

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.readers.samples import inferred_schema, label_type, samples_to_arrays


def arrays_of(schema):
    return {spec.name: (str(spec.dtype), spec.width) for spec in schema.arrays}


def test_heads_and_widths_are_those_of_the_sample():
    sample = {"features": [0.5, 1, 2], "labels": {"move": 1, "unit": 2}, "masks": {"move": [1, 0]}}

    assert arrays_of(inferred_schema(sample)) == {
        "strategic_features": ("float32", 3),
        "labels_move": ("int16", None),
        "labels_unit": ("int16", None),
        "masks_move": ("int8", 2),
    }


@pytest.mark.parametrize(
    ("label", "dtype"),
    [
        (0, "int16"),
        (True, "int16"),
        (3.0, "float32"),
        (np.zeros(1, np.float16), "float32"),
        (2.0**24, "float32"),
        (2.0**24 + 1, "float64"),
        (np.float32(2.0**30), "float32"),
        (np.uint8(3), "int16"),
        (32768, "int64"),
        ((1 << 64) - 1, "uint64"),
        (1e39, "float64"),
        (float("nan"), "int16"),
        (None, "int16"),
        ([[1], [2, 3]], "int16"),
        (np.array([1, 2, 40_000]), "int64"),
    ],
)
def test_floats_are_float32_and_whole_numbers_int16_unless_the_first_is_larger(label, dtype):
    assert label_type(label) == dtype


def test_the_type_that_is_found_is_enforced_like_one_that_is_declared():
    samples = [{"features": [1.0], "labels": {"price": price, "move": 3}} for price in (0.5, 2, 1e39)]

    arrays = samples_to_arrays(samples[:2])
    assert [(str(arrays[name].dtype), arrays[name].tolist()) for name in ("labels_price", "labels_move")] == [
        ("float32", [0.5, 2.0]),
        ("int16", [3, 3]),
    ]
    with pytest.raises(DataError) as error:
        samples_to_arrays(samples)
    assert str(error.value) == (
        "sample 2: labels: head 'price': 1e+39 does not fit float32 (at most 3.40282e+38); declare another type in "
        "preprocessing.schema.labels"
    )


def test_a_type_that_is_given_counts_more_than_the_label():
    schema = inferred_schema({"features": [1.0], "labels": {"move": 70_000}}, label_dtype="int8")

    assert arrays_of(schema)["labels_move"] == ("int8", None)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (3, "is no sample; give a dict with 'features', and 'labels' and 'masks' by head"),
        ({"turn": 1}, "is no sample; give a dict with 'features', and 'labels' and 'masks' by head"),
        ({"feature": [1]}, "has 'feature' but no 'features'; is it that?"),
        ({"features": [1], "label": {"move": 1}}, "has 'label' but no 'labels'; is it that?"),
        (
            {"features": [1], "masks": {"move": 1}},
            "masks: head 'move': has shape () but should be numbers in a row",
        ),
        ({"features": [1], "masks": [1]}, "masks: has type list; give a dict from heads to values"),
        ({"features": {"hp": 1}}, "features: has shape () but should be numbers in a row"),
        (
            {"features": [[1], [2, 3]]},
            "features: has parts of different lengths but should be numbers in a row",
        ),
    ],
)
def test_a_first_sample_that_is_none(sample, message):
    with pytest.raises(DataError) as error:
        inferred_schema(sample, file="a.rep")

    assert str(error.value) == f"a.rep: sample 0: {message}"
