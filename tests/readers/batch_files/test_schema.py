"""Schemas: widths and bytes, JSON and back, and what differs."""

import json

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.readers.store_schema import ArrayNames, ArraySpec, StoreSchema, sample_schema

GAME = sample_schema(893, ["action_type", "unit"], {"action_type": 13, "unit": 60})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"labels": "y_", "masks": "y_legal_"}, "labels begin with 'y_', and so does 'y_legal_' of masks"),
        ({"labels": "group"}, "labels begin with 'group', and so does 'groups' of groups"),
    ],
)
def test_names_that_cannot_be_told_apart(names, message):
    with pytest.raises(ConfigError, match=f"^arrays of {message}; choose names that can be told apart$"):
        ArrayNames(**names)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (GAME, None),
        (StoreSchema(GAME.arrays[::-1]), None),
        (GAME.without("labels_unit"), "array 'labels_unit' is missing"),
        (
            sample_schema(893, ["action_type", "unit"], {"action_type": 13, "unit": 60}, label_dtype="int32"),
            "array 'labels_action_type' is int32 per sample, not int16 per sample",
        ),
        (
            StoreSchema((*GAME.arrays, ArraySpec("groups", np.dtype(np.uint64)))),
            "array 'groups' is not in the schema",
        ),
    ],
)
def test_the_first_difference_in_one_line(other, difference):
    assert GAME.difference(other) == difference


def test_columns_are_carried_along_and_make_no_difference():
    plain = sample_schema(2, ["move"], {})
    known = StoreSchema((ArraySpec("strategic_features", np.dtype(np.float32), 2, ("gold", "wood")),))

    named = plain.with_columns(known)

    assert [spec.columns for spec in named.arrays] == [("gold", "wood"), ()]
    assert plain.difference(named) is None
    assert "columns" not in json.dumps(plain.as_document())
    again = StoreSchema.from_document(json.loads(json.dumps(named.as_document())))
    assert [spec.columns for spec in again.arrays] == [("gold", "wood"), ()]
