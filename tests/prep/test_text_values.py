"""Text among numbers: its row and value are told."""

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import DataError
from penstock.prep.prepare import prepare
from tests.prep.raw import prepared_arrays, section

ADVICE = "correct it, or do without the column: preprocessing.schema.feature_columns names the features"
LABEL_ADVICE = (
    "correct it, or take another column: preprocessing.schema.label_columns names those of the heads"
)
FILL = "is null; set preprocessing.schema.fill_value to the number that stands for it, or leave the row out"


def write_table(desk: Path, odd: str) -> Path:
    """20,000 rows, in one of which something else stands for a number."""
    (desk / "raw").mkdir()
    path = desk / "raw" / "table.csv"
    rows = [f"{row},{odd if row == 15_000 else 2 * row},{row % 5}\n" for row in range(20_000)]
    path.write_text("gold,wood,labels_move\n" + "".join(rows))
    return path


def test_one_word_in_a_large_file(desk: Path):
    path = write_table(desk, "abc")

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None))

    assert str(error.value) == f"{path}: row 15000: column 'wood': value 'abc' is no number; {ADVICE}"


def test_a_missing_number_is_filled(desk: Path):
    path = write_table(desk, "")

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None, batch_size=5000))
    prepare(section(desk, extract=None, batch_size=5000, schema={"fill_value": -1}))

    assert str(error.value) == (
        f"{path}: row 15000: column 'wood': is null; set preprocessing.schema.fill_value to the number that stands "
        "for it, or leave the row out with a function (preprocessing.extract)"
    )
    assert prepared_arrays(desk / "batches")["strategic_features"][15_000].tolist() == [15_000, -1]


def write_files(desk: Path, *texts: str) -> list[Path]:
    (desk / "raw").mkdir()
    paths = [desk / "raw" / f"{number}.csv" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


FULL = "gold,wood\n1,2\n3,4\n"


@pytest.mark.parametrize("schema", [{}, {"feature_columns": ["gold", "wood"]}])
def test_a_column_that_is_empty_in_a_whole_file_is_filled(desk: Path, schema: dict):
    empty = "gold,wood\n1,NA\n3,\n"
    first, *_ = write_files(desk, empty, FULL, empty)

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None, schema=schema))
    prepare(section(desk, extract=None, schema={"fill_value": -1} | schema))

    assert str(error.value).startswith(f"{first}: row 0: column 'wood': {FILL}")
    found = prepared_arrays(desk / "batches")["strategic_features"].tolist()
    assert found == [[1, -1], [3, -1], [1, 2], [3, 4], [1, -1], [3, -1]]


def test_numbers_are_read_where_no_sampled_row_has_one(desk: Path):
    zeros = "0" * 50  # more than 1 MiB of text, else all of it is looked at
    rows = [f"{row}.{zeros},{'2.5' if row == 15_000 else ''}\n" for row in range(30_000)]
    write_files(desk, "gold,wood\n" + "".join(rows))

    prepare(section(desk, extract=None, batch_size=10_000, schema={"fill_value": -1}))

    found = prepared_arrays(desk / "batches")["strategic_features"][:, 1]
    assert (found[15_000], found[15_001], len(found)) == (2.5, -1, 30_000)


def test_the_first_that_is_really_no_number_is_blamed(desk: Path):
    (path,) = write_files(desk, "gold,wood\n1,7\n2,\n3,NA\n4,abc\n")

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None, schema={"fill_value": 0}))

    assert str(error.value) == f"{path}: row 3: column 'wood': value 'abc' is no number; {ADVICE}"


def test_a_word_among_labels(desk: Path):
    (path,) = write_files(desk, "gold,labels_move\n1,7\n2,\n3,left\n")

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None))

    assert (
        str(error.value) == f"{path}: row 2: column 'labels_move': value 'left' is no number; {LABEL_ADVICE}"
    )


def test_labels_are_never_filled(desk: Path):
    (path,) = write_files(desk, "gold,labels_move\n1,\n2,\n")

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None, schema={"fill_value": 0}))

    assert str(error.value).startswith(
        f"{path}: row 0: column 'labels_move': is null; correct it, or leave the row"
    )


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([None, datetime.date(2026, 11, 16)]), "2026-11-16"),
        (pa.array([["left"], []]), "['left']"),
        (pa.array(["7", "left"]).dictionary_encode(), "left"),
        (pa.array(["7", "1_000"], pa.large_string()), "1_000"),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_what_is_neither_text_nor_number(desk: Path, column: pa.Array, shown: str):
    (desk / "raw").mkdir()
    path = desk / "raw" / "a.parquet"
    pq.write_table(pa.table({"gold": [1.0, 2.0], "wood": column}), path)

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None))

    assert str(error.value).startswith(f"{path}: row ")
    assert str(error.value).endswith(f"column 'wood': value {shown!r} is no number; {ADVICE}")


def test_numbers_that_a_file_declares_to_be_text(desk: Path):
    (desk / "raw").mkdir()
    path = desk / "raw" / "a.parquet"
    pq.write_table(pa.table({"gold": [1.0, 2.0], "wood": ["", "7"]}), path)

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None))

    assert str(error.value) == (
        f"{path}: column 'wood': holds numbers written as text; declare its type in data_config.input_fields"
    )
