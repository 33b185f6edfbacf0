"""Wrong data files: each gives one line that names the file, and the row, column and value where there are such."""

import pyarrow as pa
import pytest

from tests.cli.desk import CLICKS, Desk
from tests.end_to_end.wrong_input.mistake import Wrong

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
    Wrong("a path that is not there", command="train run.yaml --train_input_path click.parquet"),
    Wrong("a pattern that matches nothing", command="train run.yaml --train_input_path part-*.parquet"),
    Wrong("a file twice", command="train run.yaml --train_input_path clicks.parquet,clicks.parquet"),
    Wrong(
        "a suffix that tells nothing",
        files={"clicks.dat": "1,2"},
        command="train run.yaml --train_input_path clicks.dat",
    ),
    Wrong("no Parquet at all", files={"clicks.parquet": "user_id,item_id,price,click\n" * 10}),
    Wrong("half a Parquet file", prepare=cut_in_half),
    Wrong("a Parquet file with a scratch", prepare=scratch_a_page),
    Wrong("an empty file", files={"clicks.parquet": b""}),
    Wrong("a file without rows", clicks=NO_ROWS),
    Wrong(
        "a type that changes between files",
        prepare=lambda folder: Desk(folder).write_clicks("other.parquet", user_id=list("abcdef")),
        command="train run.yaml --train_input_path clicks.parquet,other.parquet",
    ),
    Wrong(
        "evaluation data without a column",
        prepare=lambda folder: Desk(folder).write_clicks("other.parquet", price=None, prize=CLICKS["price"]),
        command="train run.yaml --eval_input_path other.parquet",
    ),
]

COLUMNS = [
    Wrong("a missing column", clicks={"user_id": None, "userid": CLICKS["user_id"]}),
    Wrong("a missing label", clicks={"click": None, "clicked": CLICKS["click"]}),
    Wrong("bytes", clicks={"price": [b"1"] * 6}),
    Wrong("structs", clicks={"price": [{"dollars": 1}] * 6}),
    Wrong("texts for a label", clicks={"click": ["no", "yes"] * 3}),
]

VALUES = [
    Wrong("an id that the table does not have", clicks={"user_id": [1, 200, 3, 4, 5, 6]}),
    Wrong("a negative id", clicks={"user_id": [1, 2, -3, 4, 5, 6]}),
    Wrong("a fraction for an id", clicks={"user_id": [1.5] * 6}),
    Wrong("a word for an id", clicks={"user_id": ["1", "2", "x", "4", "5", "6"]}),
    Wrong("a word for a number", clicks={"price": ["1", "2", "cheap", "4", "5", "6"]}),
    Wrong("a number without end", clicks={"price": [1.0, 2.0, float("inf"), 4.0, 5.0, 6.0]}),
    Wrong(
        "vectors of two lengths",
        run=TWO_PRICES,
        clicks={"price": [[1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]},
    ),
    Wrong("no label in a row", clicks={"click": [0, 1, None, 1, 0, 1]}),
    Wrong("a label that is neither 0 nor 1", clicks={"click": [0, 1, 2, 1, 0, 1]}),
]

CSV = [
    Wrong("a word for an id", run=FROM_CSV, files={"clicks.csv": HEADER + "1,2,3.5,0\nx,2,3.5,1\n1,2,,1\n"}),
    Wrong(
        "a value of another type than declared",
        run=(
            *FROM_CSV,
            ("label_fields:", "input_fields: [{input_name: price, input_type: DOUBLE}]\n  label_fields:"),
        ),
        files={"clicks.csv": HEADER + "1,2,3.5,0\n1,2,cheap,1\n1,2,,1\n"},
    ),
    Wrong("a missing field", run=FROM_CSV, files={"clicks.csv": HEADER + "1,2,3.5,0\n1,2,3.5\n1,2,,1\n"}),
    Wrong("columns without names", run=FROM_CSV[:2], files={"clicks.csv": "1,2,3.5,0\n"}),
    Wrong("names without rows", run=FROM_CSV, files={"clicks.csv": HEADER}),
    Wrong("bytes", run=FROM_CSV, files={"clicks.csv": b"PAR1\xff\xfe\x00" * 20}),
]


@pytest.mark.parametrize("wrong", [*PATHS_AND_FILES, *COLUMNS, *VALUES], ids=str)
def test_one_line(desk, assert_refused, wrong):
    assert_refused(desk, wrong)


@pytest.mark.parametrize("wrong", CSV, ids=str)
def test_one_line_for_csv(desk, assert_refused, wrong):
    assert_refused(desk, wrong)


def test_a_bad_row_after_good_ones_leaves_a_run_that_can_be_started_again(desk, assert_expected):
    desk.write_run(("eval_input_path: clicks.parquet", "eval_input_path: later.parquet"))
    desk.write_clicks(user_id=[1, 2, 3, 4, 500, 6])
    desk.write_clicks("later.parquet")

    first = desk.penstock("train", "run.yaml")

    assert_expected(first.stderr)
    assert sorted(path.name for path in (desk.folder / "run").iterdir()) == [
        "data_profile.json",
        "log.jsonl",
        "run.yaml",
        "tensorboard",
        "version",
    ]

    desk.write_clicks()
    again = desk.penstock("train", "run.yaml")

    assert again.exit_code == 0, again.stderr
    log = (desk.folder / "run" / "log.jsonl").read_text()
    assert log.count('"event": "start"') == 1
