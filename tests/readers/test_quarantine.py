"""Rows that cannot be used, written aside."""

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.readers.stream import Quarantine

FILES = ["a.csv", "b.csv"]
ROW = (1 << 40) | 7
"""Row 7 of b.csv."""


def test_a_row_is_written_once_and_known_again(tmp_path: Path) -> None:
    path = tmp_path / "run" / "bad_rows.jsonl"
    for _ in range(2):
        quarantine = Quarantine(path, 10, FILES)
        quarantine.put(
            ROW, "is not a number", column="x", value="?", row="1,?\u2028separator and next\x85line"
        )

    assert [json.loads(line) for line in path.read_text().split("\n")[:-1]] == [
        {
            "file": "b.csv",
            "row": 7,
            "column": "x",
            "value": "?",
            "problem": "is not a number",
            "content": "1,?\u2028separator and next\x85line",
        }
    ]
    assert quarantine.bad(np.array([7, ROW, ROW + 1])).tolist() == [False, True, False]


def test_after_a_torn_last_line_rows_are_counted_on(tmp_path: Path) -> None:
    path = tmp_path / "bad_rows.jsonl"
    path.write_text('{"file": "a.cs')
    Quarantine(path, 10, FILES).put(ROW, "is bad")

    again = Quarantine(path, 1, FILES)
    assert len(again) == 1
    with pytest.raises(DataError, match=r"row 2: is bad; with it 2 rows cannot be used, more than .*\(1\)"):
        again.put(2, "is bad")
