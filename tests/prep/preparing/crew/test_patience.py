"""Tasks that are silent for far too long."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.prep.preparing.crew.patience import Patience
from penstock.prep.preparing.preparing import prepare
from penstock.prep.preparing.tasks import Task
from penstock.readers.files import DataFile
from tests.prep.preparing.raw import events, section, write_games


class Clock:
    """Time that passes when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class ClockFromAFileOn(Clock):
    """Time that stands still until there is a file, and then passes with every look at it."""

    file: Path

    def __call__(self) -> float:
        self.now += 100 * self.file.exists()
        return self.now


def task(number: int) -> Task:
    return Task(number, (DataFile(f"game_{number}.txt", 1),))


def told(patience: Patience) -> list[int]:
    return [silence.task for silence in patience.silent()]


def test_a_silent_task_is_told_and_again_when_it_has_doubled():
    clock = Clock()
    patience = Patience(60, clock)
    patience.began(task(3))

    clock.now += 60
    assert told(patience) == []
    clock.now += 1
    [silence] = patience.silent()
    assert silence.line == (
        "game_3.txt: nothing was heard of this file for 61 s; it goes on, Ctrl-C stops and keeps what is done"
    )
    clock.now += 61
    assert told(patience) == []
    clock.now += 1
    assert told(patience) == [3]


def test_one_that_tells_something_is_not_silent():
    clock = Clock()
    patience = Patience(60, clock)
    patience.began(task(0))

    for _ in range(3):
        clock.now += 59
        patience.heard(0, "game_1.txt")
    clock.now += 59
    assert told(patience) == []
    patience.ended(0)
    clock.now += 10_000
    assert told(patience) == []


def test_one_that_waits_is_not_silent():
    clock = Clock()
    patience = Patience(60, clock)
    patience.began(task(0))
    patience.put_back(task(0))

    clock.now += 100
    assert told(patience) == []


def test_where_others_are_slow_it_may_take_ten_times_as_long():
    clock = Clock()
    patience = Patience(60, clock)
    patience.began(task(0))
    clock.now += 20
    patience.ended(0)

    patience.began(task(1))
    clock.now += 200
    assert told(patience) == []
    clock.now += 1
    [silence] = patience.silent()
    assert (
        "game_1.txt: nothing was heard of this file for 201 s; until now it was 20.0 s at most;"
        in silence.line
    )


def test_a_worker_that_hangs_is_in_the_log(desk: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any):
    monkeypatch.setattr("penstock.prep.preparing.tasks._LEAST_TASK_BYTES", 1)
    games = write_games(desk / "raw", [2, 2])
    games[1].write_text("here\nawait ../batches/log.jsonl silent\n")
    clock = ClockFromAFileOn(Path(f"{games[1]}.here"))
    monkeypatch.setattr("penstock.prep.preparing.watching.Patience", lambda: Patience(60, clock))

    prepare(section(desk, parallel=True, num_workers=1))

    silent = [event for event in events(desk / "batches") if event["event"] == "silent"]
    assert (silent[0]["task"], silent[0]["file"]) == (1, str(games[1]))
    assert f"{games[1]}: nothing was heard" in capfd.readouterr().err
