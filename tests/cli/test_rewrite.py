"""`penstock rewrite`: any format in, well-sized Parquet out."""

import os
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import penstock
from tests.cli.desk import CLICKS, Desk

ROWS = Counter(zip(*CLICKS.values(), strict=True))


def rows_of(desk: Desk, folder: str) -> list[tuple[object, ...]]:
    table = pq.read_table(desk.folder / folder).select(list(CLICKS))
    return list(zip(*table.to_pydict().values(), strict=True))


def test_in_the_order_of_the_input(desk: Desk):
    words = ["--columns", "click,user_id", "--compression", "snappy"]
    assert desk.penstock("rewrite", "clicks.parquet", "out", *words).exit_code == 0
    footer = pq.read_metadata(desk.folder / "out" / "part-00000.parquet")
    assert footer.schema.names == ["click", "user_id"]
    assert footer.row_group(0).column(0).compression == "SNAPPY"

    done = desk.penstock("rewrite", "clicks.parquet", "out", "--overwrite")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        "out: 6 rows in the order of the input",
        "  files: 1, row groups: 1 of about 6 rows",
    ]
    assert done.stderr.splitlines()[0].startswith("disk: needs about ")
    assert rows_of(desk, "out") == list(ROWS)


def test_compressed_csv_shuffled_and_verified(desk: Desk):
    with pa.CompressedOutputStream(str(desk.folder / "clicks.csv.gz"), "gzip") as sink:
        pyarrow.csv.write_csv(pa.table(CLICKS), sink)

    done = desk.penstock("rewrite", "clicks.csv.gz", "out", "--shuffle", "--verify")

    assert done.exit_code == 0, done.stderr
    assert Counter(rows_of(desk, "out")) == ROWS


MISTAKES = {
    "a format": (["--format", "csv"], "--format is 'csv'; rewriting writes parquet"),
    "a compression": (["--compression", "zst"], "--compression: there is no 'zst'; did you mean 'zstd'?"),
    "a size": (
        ["--file-size", "big"],
        "--file-size is 'big'; expected a size such as 4GiB, 64MiB, 10MB or a number of bytes",
    ),
    "two ways": (
        ["--files", "2", "--file-size", "1MiB"],
        "--files and --file-size say the same in two ways; give one of them",
    ),
    "a seed alone": (["--seed", "7"], "--seed has no effect without --shuffle"),
    "a column": (["--columns", "clik"], "clicks.parquet: there is no column 'clik'; did you mean 'click'?"),
}


@pytest.mark.parametrize(("words", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(desk: Desk, words, message):
    before = desk.content()

    done = desk.penstock("rewrite", "clicks.parquet", "out", *words)

    assert (done.exit_code, done.stderr) == (1, f"error: {message}\n")
    assert desk.content() == before


STOPPED = """
import os, signal, sys
from penstock.cli.app import app
from penstock.prep import rewrite

number = getattr(signal, sys.argv.pop())
rows = rewrite._rows
def interrupted(*given):
    os.kill(os.getpid(), number)
    yield from rows(*given)
rewrite._rows = interrupted
app()
"""


def test_a_stop_leaves_nothing(desk: Desk):
    before = desk.content()
    source = os.path.dirname(os.path.dirname(penstock.__file__))

    done = subprocess.run(
        [sys.executable, "-c", STOPPED, "rewrite", "clicks.parquet", "out", "SIGTERM"],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 143
    assert done.stderr.splitlines()[-1] == "error: stopped: nothing was written"
    assert desk.content() == before
