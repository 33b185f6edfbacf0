"""What a function of the user may give, how it is understood, and which schema and groups of features follow."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.prep.extract import Extraction, split_features
from penstock.prep.merge.merging import merge
from penstock.prep.prepare import prepare
from penstock.prep.schema import found_in
from penstock.prep.sections import SampleSchema
from penstock.prep.split_groups import groups_of
from penstock.prep.tasks import FileFailed
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from tests.prep.raw import prepared_arrays, section, write_games

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

    expected = groups_of(["x", "y"], "match", "game", 0).tolist()
    assert sample["groups"] == expected[0]
    assert arrays.values.keys() == batch.values.keys() == {"strategic_features", "groups"}
    assert batch.values["groups"].tolist() == arrays.values["groups"].tolist() == expected


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


def test_groups_of_columns_need_columns():
    prices = SampleSchema(features_name="seen", feature_groups={"prices": ["price_*"]})
    with pytest.raises(DataError) as error:
        split_features({"features": [1]}, "features", prices, "game.txt: sample 3", 0)

    assert str(error.value) == (
        "game.txt: sample 3: preprocessing.schema.feature_groups: 'prices' names columns, but there are none here; "
        "say how many features it has"
    )


GROUPS = {"schema": {"feature_groups": {"place": 2}}, "feature_dtypes": {"place": "float16"}}


@pytest.mark.parametrize("function", ["samples", "arrays", "nested", "batches"])
def test_each_group_has_its_file_and_its_type(desk: Path, function: str):
    write_games(desk / "raw", [3, 6])

    summary = prepare(section(desk, extract=f"rawgame:{function}", **GROUPS))
    merge(desk / "batches", desk / "store")

    place, rest = (np.load(desk / "store" / name) for name in ("X_place_train.npy", "X_train.npy"))
    assert (place.dtype, rest.dtype) == ("float16", "float32")
    assert place[:4].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]
    assert rest[:4].tolist() == [[0.5], [1.5], [2.5], [1000.5]]
    assert summary.largest_errors == {"strategic_features_place": 0.0}


def test_a_number_too_large_for_the_type_of_its_group_is_told(desk: Path):
    (desk / "raw").mkdir()
    (desk / "raw" / "game_0.txt").write_text("0 1 1 99999\n1 1 99999 1\n")

    with pytest.raises(FileFailed, match=r"game_0\.txt: sample 1: strategic_features_place\[1\]: .*float16"):
        prepare(section(desk, **GROUPS))


def test_a_sample_with_other_features_is_told(desk: Path):
    (desk / "raw").mkdir()
    (desk / "raw" / "game_0.txt").write_text("0 1 1\n1 1 2 3\n")

    with pytest.raises(FileFailed, match=r"sample 1: features: has 1 that no array of the schema takes"):
        prepare(section(desk, **GROUPS))
    (desk / "raw" / "game_0.txt").write_text("0 1 1 1\n1 1\n")
    with pytest.raises(FileFailed, match=r"sample 1: features: has 1, but the groups of .*groups are 2"):
        prepare(section(desk, **GROUPS), restart=True)


def test_columns_in_groups(tmp_path: Path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("price_2,x,price_10,action\n1.5,2,3.5,1\n4,5,6,0\n")
    schema = {"feature_groups": {"prices": ["price_*"]}, "labels": {"action": "int16"}}

    prepare(section(tmp_path, extract=None, schema=schema, feature_dtypes={"prices": "float16"}))

    assert {name: array.tolist() for name, array in prepared_arrays(tmp_path / "batches").items()} == {
        "strategic_features": [[2], [5]],
        "strategic_features_prices": [[1.5, 3.5], [4, 6]],
        "labels_action": [1, 0],
    }


LABELS: list[Any] = []


def samples(path: str) -> Iterator[Any]:
    for label in LABELS:
        yield {"features": [1.0], "labels": {"a": label, "b": 1}}


def arrays(path: str) -> Iterator[Any]:
    yield {
        "features": np.ones((len(LABELS), 1)),
        "labels": {"a": np.array(LABELS), "b": np.ones(len(LABELS), int)},
    }


def batches(path: str) -> Iterator[Any]:
    ones = np.ones(len(LABELS))
    yield pa.record_batch({"x": ones, "labels_a": np.array(LABELS), "labels_b": ones.astype(int)})


def label_types(form: str, labels: list[Any], **declared: str) -> tuple[str, str]:
    LABELS[:] = labels
    schema = SampleSchema(labels=declared)
    extraction = Extraction(f"{__name__}:{form}", schema, ReadingSection())
    found = found_in(DataFile("game", 1), extraction, {"strategic_features": "float32"})
    assert found is not None
    return str(found[1].spec("labels_a").dtype), str(found[1].spec("labels_b").dtype)


@pytest.mark.parametrize("form", ["samples", "arrays", "batches"])
def test_labels_have_the_declared_type_or_the_one_that_the_first_sample_needs(form: str):
    for labels, dtype in (
        ([3, 70_000], "int16"),
        ([70_000], "int64"),
        ([0.5], "float32"),
        ([1e9 + 0.5], "float64"),
    ):
        assert label_types(form, labels) == (dtype, "int16")
    assert label_types(form, [70_000, 1], a="uint32") == ("uint32", "int16")
    assert label_types(form, [70_000, 1], b="float64") == ("int64", "float64")
