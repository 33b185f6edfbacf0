"""What a task tells while it is done."""

from pathlib import Path

import pytest

from penstock.prep.preparing.preparing import prepare
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import LeftOut, TaskProgress
from tests.prep.preparing.raw import section, write_games


def test_a_slow_function_is_heard_of_before_a_batch_is_full(desk: Path, monkeypatch: pytest.MonkeyPatch):
    [game] = write_games(desk / "raw", [1])
    game.write_text("0 1 2 3\nwait 0.2\nwait 0.2\n")
    monkeypatch.setattr("penstock.prep.preparing.work._TELL_SECONDS", 0.1)
    told: list[TaskProgress | LeftOut] = []
    monkeypatch.setattr(Watch, "hear", lambda self, event: told.append(event))

    prepare(section(desk, batch_size=100))

    assert told == [
        TaskProgress(0, 0, 0, str(game)),
        TaskProgress(0, 0, 2, str(game)),
        TaskProgress(0, 0, 3, str(game)),
    ]
