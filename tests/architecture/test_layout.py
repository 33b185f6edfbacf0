"""Habits of the tree that reading a diff does not always catch."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "penstock"
FILES = sorted(SOURCE.rglob("*.py"))
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "base", "core", "misc"}
MAX_LINES = 500


def short(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_no_module_has_a_name_that_says_nothing():
    vague = [short(path) for path in FILES if VAGUE_NAMES & {path.stem, path.parent.name}]

    assert vague == []


def test_no_file_is_too_long_to_read():
    lengths = {short(path): len(path.read_text().splitlines()) for path in FILES}

    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME"])
def test_nothing_is_left_for_later_in_a_comment(word: str):
    assert [short(path) for path in FILES if word in path.read_text()] == []
