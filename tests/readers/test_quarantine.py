"""Rows that cannot be used, written aside."""

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.readers.quarantine import Quarantine

FILES = ["a.csv", "b.csv"]
ROW = (1 << 40) | 7
"""Row 7 of b.csv."""


def test_a_row_is_written_once_with_its_reason(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path / "run" / "bad_rows.jsonl", 10, FILES)
    for _ in range(2):
        quarantine.put(ROW, "is not a number", column="x", value="?", row="1,?")

    assert [json.loads(line) for line in quarantine.path.read_text().splitlines()] == [
        {
            "file": "b.csv",
            "row": 7,
            "column": "x",
            "value": "?",
            "problem": "is not a number",
            "content": "1,?",
        }
    ]
    assert quarantine.bad(np.array([7, ROW, ROW + 1])).tolist() == [False, True, False]


def test_rows_are_known_again_whatever_they_hold(tmp_path: Path) -> None:
    first = Quarantine(tmp_path / "bad_rows.jsonl", 10, FILES)
    first.put(ROW, "is bad", row="line\u2028separator and next\x85line")
    first.put(3, "is bad")

    again = Quarantine(tmp_path / "bad_rows.jsonl", 10, FILES)
    assert len(again) == 2
    assert again.bad(np.array([3, ROW])).all()


def test_a_torn_last_line_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "bad_rows.jsonl"
    path.write_text('{"file": "a.cs')
    Quarantine(path, 10, FILES).put(ROW, "is bad")

    assert len(Quarantine(path, 10, FILES)) == 1


def test_the_limit_holds_after_a_restart_too(tmp_path: Path) -> None:
    for _ in range(2):
        quarantine = Quarantine(tmp_path / "bad_rows.jsonl", 1, FILES)
        quarantine.put(1, "is bad") if len(quarantine) == 0 else None
        with pytest.raises(
            DataError, match=r"row 2: is bad; with it 2 rows cannot be used, more than .*\(1\)"
        ):
            quarantine.put(2, "is bad")


def test_without_a_path_rows_are_counted_only() -> None:
    quarantine = Quarantine(None, 1, FILES)
    quarantine.put(1, "is bad")

    assert len(quarantine) == 1
