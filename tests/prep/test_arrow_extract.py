"""Functions that give Arrow batches: columns are known by their names, whatever order a file has them in."""

from pathlib import Path

import pytest

from penstock.prep.prepare import prepare
from penstock.prep.tasks import FileFailed
from tests.prep.raw import prepared_arrays, section

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


def test_columns_in_another_order_are_the_same_features(table_desk: Path):
    prepare(section(table_desk, extract="tabular:tables"))

    arrays = prepared_arrays(table_desk / "batches")
    assert arrays["strategic_features"].tolist() == [[1, 2], [3, 4], [10, 20]]
    assert arrays["labels_move"].tolist() == [0, 1, 1]


def test_a_file_with_other_columns_is_refused(table_desk: Path):
    other = table_desk / "raw" / "part_1.csv"
    other.write_text("gold,stone,labels_move\n10,20,1\n")

    with pytest.raises(FileFailed) as error:
        prepare(section(table_desk, extract="tabular:tables"))

    assert str(error.value).startswith(
        f"{other}: has no column 'wood', which preprocessing.schema.feature_columns names or the first file has; "
    )


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            "gold,wood,labels_move,stone",
            "column 'stone' is not in the first file that has samples; name the features",
        ),
        (
            "gold,wood,labels_move,labels_unit",
            "column 'labels_unit', of head 'unit', is not in the first file",
        ),
        ("gold,wood,labels_move,gold", "column 'gold': stands 2 times in this file"),
    ],
)
def test_a_table_with_a_further_column_is_refused(table_desk: Path, columns: str, problem: str):
    other = table_desk / "raw" / "part_1.csv"
    other.write_text(f"{columns}\n10,20,1,7\n")

    with pytest.raises(FileFailed) as error:
        prepare(section(table_desk, extract="tabular:tables"))

    assert str(error.value).startswith(f"{other}: {problem}")


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
