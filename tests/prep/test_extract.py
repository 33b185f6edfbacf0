"""What a function of the user may give, and how it is understood."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.prep.extract import Arrays, Extraction, in_one_line
from penstock.prep.sections import SampleSchema
from penstock.prep.split_groups import group_number
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection

GIVEN: list[Any] = []


class Frame:
    """A table as libraries have them: an array whose columns have names."""

    columns = ("gold", "wood")
    ndim = 2

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.ones((3, 2), dtype)


def given(path: str) -> Any:
    """Whatever a test wants."""
    del path
    return GIVEN[0]


def items(value: Any, group_key: str | None = None, feature_columns: Sequence[str] = ()) -> list[Any]:
    GIVEN[:] = [value]
    place = f"{__name__}:given"
    extraction = Extraction(
        place, SampleSchema(feature_columns=[*feature_columns]), ReadingSection(), group_key
    )
    return list(extraction.items(DataFile("game", 1)))


def test_samples_are_passed_on_as_they_are():
    sample = {"features": [1.0], "labels": {"a": 1}, "match": "x"}

    assert items([sample]) == [sample]
    assert items(iter([sample]))[0] is sample


def test_groups_are_added_under_their_name():
    [sample] = items([{"features": [1.0], "match": "x"}], "match")
    [arrays] = items([{"strategic_features": np.zeros((2, 3)), "match": np.array(["x", "y"])}], "match")
    [batch] = items([pa.record_batch({"price": [1.0, 2.0], "match": ["x", "y"]})], "match", ["price"])

    assert sample["groups"] == group_number("x")
    assert arrays.values.keys() == batch.values.keys() == {"strategic_features", "groups"}
    assert arrays.values["groups"].tolist() == [group_number("x"), group_number("y")]
    assert batch.values["groups"].tolist() == arrays.values["groups"].tolist()


def test_tables_are_taken_batch_by_batch():
    table = pa.table({"price": [1.0, 2.0, 3.0], "labels_buy": [0, 1, 0]})

    [arrays] = items([table], feature_columns=["price"])

    assert isinstance(arrays, Arrays)
    assert arrays.values["strategic_features"].tolist() == [[1.0], [2.0], [3.0]]
    assert arrays.values["labels_buy"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("value", "group_key", "problem"),
    [
        (3, None, "gave an object of type int; it should give samples, one after the other"),
        (
            {"features": [1.0]},
            None,
            "gave an object of type dict; yield it in place of return",
        ),
        (pa.table({"price": [1.0]}), None, "gave an object of type Table; yield it in place of return"),
        (
            [{"feats": [1.0], "labels": {"a": 1}, "match": "x"}],
            None,
            "sample 0: has no 'features' but 'feats', 'labels', 'match'; is it 'feats'?",
        ),
        ([{"x": [1.0]}], None, "sample 0: has no 'features' but 'x'"),
        (
            [{"features": Frame()}],
            None,
            "sample 0: 'features' is an object of type Frame, whose columns would be taken by their place; choose",
        ),
        (
            [{"strategic_features": 3}],
            None,
            "'strategic_features' is no array with samples along its first axis",
        ),
        ([{"features": [1.0]}], "match", "has no 'match', which preprocessing.splits.group_key names"),
        ([{"strategic_features": np.zeros((1, 1))}], "match", "has no 'match', which preprocessing.splits"),
    ],
)
def test_what_cannot_be_understood(value: Any, group_key: str | None, problem: str):
    with pytest.raises(DataError, match=r"^game: ") as error:
        items(value, group_key)

    assert problem in str(error.value)


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_in_one_line():
    assert in_one_line(ValueError("one\n\ttwo ")) == "ValueError: one two"
    assert in_one_line(KeyError()) == "KeyError"


def test_an_error_that_cannot_tell_its_text():
    assert in_one_line(Speechless()) == "Speechless, which fails to tell its text"
