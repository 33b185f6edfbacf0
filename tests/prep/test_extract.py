"""What a function of the user may give, and how it is understood."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.prep.extract import Extraction
from penstock.prep.prepare import prepare
from penstock.prep.sections import SampleSchema
from penstock.prep.split_groups import group_number
from penstock.prep.tasks import FileFailed
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from tests.prep.raw import prepared_arrays, section

GIVEN: list[Any] = []


class Frame:
    """A table as libraries have them: an array whose columns have names."""

    columns = ("gold", "wood")
    ndim = 2

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.ones((3, 2), dtype)


def given(path: str) -> Any:
    del path
    return GIVEN[0]


def items(value: Any, group_key: str | None = None, feature_columns: Sequence[str] = ()) -> list[Any]:
    GIVEN[:] = [value]
    place = f"{__name__}:given"
    extraction = Extraction(
        place, SampleSchema(feature_columns=[*feature_columns]), ReadingSection(), group_key
    )
    return list(extraction.items(DataFile("game", 1)))


def test_groups_are_added_under_their_name():
    [sample] = items([{"features": [1.0], "match": "x"}], "match")
    [arrays] = items([{"strategic_features": np.zeros((2, 3)), "match": np.array(["x", "y"])}], "match")
    [batch] = items([pa.record_batch({"price": [1.0, 2.0], "match": ["x", "y"]})], "match", ["price"])

    assert sample["groups"] == group_number("x")
    assert arrays.values.keys() == batch.values.keys() == {"strategic_features", "groups"}
    assert arrays.values["groups"].tolist() == [group_number("x"), group_number("y")]
    assert batch.values["groups"].tolist() == arrays.values["groups"].tolist()


@pytest.mark.parametrize(
    ("value", "group_key", "problem"),
    [
        (3, None, "gave an object of type int; it should give samples, one after the other"),
        (
            [3],
            None,
            "sample 0: 'tests.prep.test_extract:given' gave an object of type int; it should give dicts",
        ),
        (
            {"features": [1.0]},
            None,
            "gave an object of type dict; yield it in place of return",
        ),
        (
            [{"feats": [1.0], "labels": {"a": 1}, "match": "x"}],
            None,
            "sample 0: has no 'features' but 'feats', 'labels', 'match'; is it 'feats'?",
        ),
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
    ],
)
def test_what_cannot_be_understood(value: Any, group_key: str | None, problem: str):
    with pytest.raises(DataError, match=r"^game: ") as error:
        items(value, group_key)

    assert problem in str(error.value)


READS_CSV = """
import pyarrow as pa
from pyarrow import csv

def tables(path):
    yield csv.read_csv(path)

def samples_then_tables(path):
    if path.endswith("0.csv"):
        yield {"features": [1.0, 2.0], "labels": {"move": 1}}
    else:
        yield from tables(path)
"""


@pytest.fixture
def table_desk(desk: Path) -> Path:
    """A folder with the module `tabular`, and raw files with the same columns in another order."""
    (desk / "tabular.py").write_text(READS_CSV)
    (desk / "raw").mkdir()
    (desk / "raw" / "part_0.csv").write_text("gold,wood,labels_move\n1,2,0\n3,4,1\n")
    (desk / "raw" / "part_1.csv").write_text("labels_move,wood,gold\n1,20,10\n")
    return desk


def test_a_table_with_a_column_twice_is_refused(table_desk: Path):
    other = table_desk / "raw" / "part_1.csv"
    other.write_text("gold,wood,labels_move,gold\n10,20,1,7\n")

    with pytest.raises(FileFailed) as error:
        prepare(section(table_desk, extract="tabular:tables"))

    assert str(error.value).startswith(f"{other}: column 'gold': stands 2 times in this file")


def test_the_first_order_holds_when_one_goes_on(table_desk: Path):
    first = section(table_desk, extract="tabular:tables")
    prepare(first)
    (table_desk / "batches" / "tasks" / "task_00000.json").unlink()

    prepare(first)

    assert prepared_arrays(table_desk / "batches")["strategic_features"].tolist() == [
        [1, 2],
        [3, 4],
        [10, 20],
    ]


def test_columns_after_dicts_need_names(table_desk: Path):
    with pytest.raises(FileFailed) as error:
        prepare(section(table_desk, extract="tabular:samples_then_tables"))

    assert str(error.value) == (
        f"{table_desk}/raw/part_1.csv: gives columns, but the first sample was a dict, so that nobody knows which are "
        "features in which order; name them in preprocessing.schema.feature_columns"
    )
    declared = {"feature_columns": ["gold", "wood"]}
    prepare(section(table_desk, extract="tabular:samples_then_tables", schema=declared))
    assert prepared_arrays(table_desk / "batches")["strategic_features"].tolist() == [[1, 2], [10, 20]]
