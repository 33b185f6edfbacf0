"""Wrong data files: each gives one line that names the file, and the row, column and value where there are such."""

import pyarrow as pa
import pytest

from tests.cli.desk import CLICKS, Desk
from tests.end_to_end.wrong_input.mistake import Wrong, assert_told_in_one_line

NO_ROWS = {name: pa.array([], pa.float64() if name == "price" else pa.int64()) for name in CLICKS}
FROM_CSV = (
    ("train_input_path: clicks.parquet", "train_input_path: clicks.csv"),
    ("eval_input_path: clicks.parquet\n", ""),
    ("batch_size: 4", "batch_size: 4\n  with_header: true"),
)
HEADER = "user_id,item_id,price,click\n"
TWO_PRICES = (('default_value: "0"', 'default_value: "0", value_dim: 2'),)


def cut_in_half(folder) -> None:
    file = folder / "clicks.parquet"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scratch_a_page(folder) -> None:
    file = folder / "clicks.parquet"
    content = bytearray(file.read_bytes())
    content[20:60] = b"\xff" * 40
    file.write_bytes(content)


PATHS_AND_FILES = [
    Wrong(
        "a path that is not there",
        "click.parquet: no such file or directory; did you mean 'clicks.parquet'?",
        command="train run.yaml --train_input_path click.parquet",
    ),
    Wrong(
        "a pattern that matches nothing",
        "part-*.parquet: matches nothing; . holds clicks.parquet, run.yaml",
        command="train run.yaml --train_input_path part-*.parquet",
    ),
    Wrong(
        "a file twice",
        "'clicks.parquet,clicks.parquet' names clicks.parquet twice; its rows would be read twice",
        command="train run.yaml --train_input_path clicks.parquet,clicks.parquet",
    ),
    Wrong(
        "a suffix that tells nothing",
        "clicks.dat: the suffix does not tell the format; set data_config.dataset_type",
        files={"clicks.dat": "1,2"},
        command="train run.yaml --train_input_path clicks.dat",
    ),
    Wrong(
        "no Parquet at all",
        "clicks.parquet: is not a whole Parquet file: Parquet magic bytes not found in footer; "
        "write it again, or leave it out",
        files={"clicks.parquet": "user_id,item_id,price,click\n" * 10},
    ),
    Wrong(
        "half a Parquet file",
        "clicks.parquet: is not a whole Parquet file: Parquet magic bytes not found in footer; "
        "write it again, or leave it out",
        prepare=cut_in_half,
    ),
    Wrong(
        "a Parquet file with a scratch",
        "clicks.parquet: cannot be read to its end, it is damaged: Corrupt snappy compressed data; write it again",
        prepare=scratch_a_page,
    ),
    Wrong(
        "an empty file",
        "clicks.parquet: is empty (0 bytes); write it again or leave it out",
        files={"clicks.parquet": b""},
    ),
    Wrong(
        "a file without rows",
        "eval_input_path: the files give no batch: they have no rows, or fewer than data_config.batch_size with "
        "drop_remainder",
        clicks=NO_ROWS,
    ),
    Wrong(
        "a type that changes between files",
        "column 'user_id' is int64 in clicks.parquet but string in other.parquet; write both with one type",
        prepare=lambda folder: Desk(folder).write_clicks("other.parquet", user_id=list("abcdef")),
        command="train run.yaml --train_input_path clicks.parquet,other.parquet",
    ),
    Wrong(
        "evaluation data without a column",
        "other.parquet: there is no column 'price'; did you mean 'prize'?",
        prepare=lambda folder: Desk(folder).write_clicks("other.parquet", price=None, prize=CLICKS["price"]),
        command="train run.yaml --eval_input_path other.parquet",
    ),
]

COLUMNS = [
    Wrong(
        "a missing column",
        "clicks.parquet: there is no column 'user_id'; did you mean 'userid'?",
        clicks={"user_id": None, "userid": CLICKS["user_id"]},
    ),
    Wrong(
        "a missing label",
        "clicks.parquet: there is no column 'click'; did you mean 'clicked'?",
        clicks={"click": None, "clicked": CLICKS["click"]},
    ),
    Wrong(
        "bytes",
        "clicks.parquet: column 'price': has type binary, which cannot be used; write it as string",
        clicks={"price": [b"1"] * 6},
    ),
    Wrong(
        "structs",
        "clicks.parquet: column 'price': has type struct<dollars: int64>, which cannot be used; "
        "write its fields as columns of their own",
        clicks={"price": [{"dollars": 1}] * 6},
    ),
    Wrong(
        "texts for a label",
        "clicks.parquet: column 'click': is a string; a label is a number",
        clicks={"click": ["no", "yes"] * 3},
    ),
]

VALUES = [
    Wrong(
        "an id that the table does not have",
        "clicks.parquet: row 1: column 'user_id': value 200 is outside 0 to 99, the ids of feature 'user'",
        clicks={"user_id": [1, 200, 3, 4, 5, 6]},
    ),
    Wrong(
        "a negative id",
        "clicks.parquet: row 2: column 'user_id': value -3 is outside 0 to 99, the ids of feature 'user'",
        clicks={"user_id": [1, 2, -3, 4, 5, 6]},
    ),
    Wrong(
        "a fraction for an id",
        "clicks.parquet: row 0: column 'user_id': value 1.5 is not a whole number, so no id",
        clicks={"user_id": [1.5] * 6},
    ),
    Wrong(
        "a word for an id",
        "clicks.parquet: row 2: column 'user_id': value 'x' is not a 64-bit integer",
        clicks={"user_id": ["1", "2", "x", "4", "5", "6"]},
    ),
    Wrong(
        "a word for a number",
        "clicks.parquet: row 2: column 'price': value 'cheap' is not a number",
        clicks={"price": ["1", "2", "cheap", "4", "5", "6"]},
    ),
    Wrong(
        "a number without end",
        "clicks.parquet: row 2: column 'price': value inf is not a finite float32",
        clicks={"price": [1.0, 2.0, float("inf"), 4.0, 5.0, 6.0]},
    ),
    Wrong(
        "vectors of two lengths",
        "clicks.parquet: row 1: column 'price': expected 2 values (value_dim), found 1",
        run=TWO_PRICES,
        clicks={"price": [[1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]},
    ),
    Wrong(
        "no label in a row",
        "clicks.parquet: row 2: column 'click': is null; every row needs a label",
        clicks={"click": [0, 1, None, 1, 0, 1]},
    ),
    Wrong(
        "a label that is neither 0 nor 1",
        "clicks.parquet: row 2: column 'click': value 2 is outside 0 to 1, the labels of a binary loss",
        clicks={"click": [0, 1, 2, 1, 0, 1]},
    ),
]

CSV = [
    Wrong(
        "a word for an id",
        "clicks.csv: row 1: column 'user_id': value 'x' is not a 64-bit integer",
        run=FROM_CSV,
        files={"clicks.csv": HEADER + "1,2,3.5,0\nx,2,3.5,1\n1,2,,1\n"},
    ),
    Wrong(
        "a value of another type than declared",
        "clicks.csv: row 1: column 'price': value 'cheap' is not double; "
        "correct it, or declare another type in data_config.input_fields",
        run=(
            *FROM_CSV,
            ("label_fields:", "input_fields: [{input_name: price, input_type: DOUBLE}]\n  label_fields:"),
        ),
        files={"clicks.csv": HEADER + "1,2,3.5,0\n1,2,cheap,1\n1,2,,1\n"},
    ),
    Wrong(
        "a missing field",
        "clicks.csv: row 1: has 3 columns, not 4; is data_config.delimiter right?",
        run=FROM_CSV,
        files={"clicks.csv": HEADER + "1,2,3.5,0\n1,2,3.5\n1,2,,1\n"},
    ),
    Wrong(
        "columns without names",
        "run.yaml: data_config.input_fields: must name the columns of clicks.csv, unless with_header is true",
        run=FROM_CSV[:2],
        files={"clicks.csv": "1,2,3.5,0\n"},
    ),
    Wrong(
        "names without rows",
        "train_input_path: the files give no batch: they have no rows, or fewer than data_config.batch_size with "
        "drop_remainder",
        run=FROM_CSV,
        files={"clicks.csv": HEADER},
    ),
    Wrong(
        "bytes",
        "clicks.csv: is not UTF-8 text; is it CSV?",
        run=FROM_CSV,
        files={"clicks.csv": b"PAR1\xff\xfe\x00" * 20},
    ),
]


@pytest.mark.parametrize("wrong", [*PATHS_AND_FILES, *COLUMNS, *VALUES], ids=str)
def test_one_line(desk: Desk, wrong: Wrong) -> None:
    assert_told_in_one_line(desk, wrong)


@pytest.mark.parametrize("wrong", CSV, ids=str)
def test_one_line_for_csv(desk: Desk, wrong: Wrong) -> None:
    assert_told_in_one_line(desk, wrong)


def test_a_bad_row_after_good_ones_leaves_a_run_that_can_be_started_again(desk: Desk) -> None:
    desk.write_clicks(user_id=[1, 2, 3, 4, 500, 6])

    first = desk.penstock("train", "run.yaml")

    assert first.stderr == (
        "error: clicks.parquet: row 4: column 'user_id': value 500 is outside 0 to 99, the ids of feature 'user'\n"
    )
    assert sorted(path.name for path in (desk.folder / "run").iterdir()) == [
        "data_profile.json",
        "log.jsonl",
        "run.yaml",
        "version",
    ]

    desk.write_clicks()
    again = desk.penstock("train", "run.yaml")

    assert again.exit_code == 0, again.stderr
    log = (desk.folder / "run" / "log.jsonl").read_text()
    assert log.count('"event": "start"') == 1
