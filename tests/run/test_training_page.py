"""docs/training.md shows what really happens."""

import re
import sqlite3
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_callback_of_the_page_feeds_its_tracker(desk):
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## Callbacks")
    (program,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    names = {}

    exec(compile(program, str(PAGE), "exec"), names)

    found = sqlite3.connect(desk.folder / "tracker.db").execute(
        "SELECT run, step, event, name FROM numbers WHERE name IN ('loss', 'auc') ORDER BY rowid"
    )
    assert found.fetchall() == [
        ("run", 1, "train", "loss"),
        ("run", 2, "train", "loss"),
        ("run", 2, "eval", "auc"),
    ]
    assert names["result"].steps == 2
