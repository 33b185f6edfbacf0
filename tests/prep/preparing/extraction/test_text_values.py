"""Text among numbers: its row and value are told."""

from pathlib import Path

import pytest

from penstock.config.errors import DataError
from penstock.prep.preparing.extraction.text_values import text_in
from penstock.prep.preparing.preparing import prepare
from tests.prep.preparing.raw import prepared_arrays, section

ADVICE = "correct it, or do without the column: preprocessing.schema.feature_columns names the features"


def write_table(desk: Path, odd: str) -> Path:
    """20,000 rows, in one of which something else stands for a number."""
    (desk / "raw").mkdir()
    path = desk / "raw" / "table.csv"
    rows = [f"{row},{odd if row == 15_000 else 2 * row},{row % 5}\n" for row in range(20_000)]
    path.write_text("gold,wood,labels_move\n" + "".join(rows))
    return path


@pytest.mark.parametrize("schema", [{}, {"feature_columns": ["gold", "wood"]}])
def test_one_word_in_a_large_file(desk: Path, schema: dict):
    path = write_table(desk, "abc")

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None, schema=schema))

    assert str(error.value) == f"{path}: row 15000: column 'wood': value 'abc' is no number; {ADVICE}"


def test_with_all_files_failing_the_first_reason_is_told(desk: Path):
    path = write_table(desk, "abc")

    with pytest.raises(DataError) as error:
        prepare(section(desk, extract=None, on_error="skip"))

    assert str(error.value) == (
        f"{path}: row 15000: column 'wood': value 'abc' is no number; {ADVICE}; no file is left that gives a sample"
    )


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


def test_a_long_text_is_cut():
    error = text_in([None, "7", "x" * 50], "a", "b", 10)

    assert str(error) == f"a: row 12: column 'b': value '{'x' * 40}...' is no number; {ADVICE}"
    assert text_in([1, None, "2.5"], "a", "b") is None
