"""What a task tells while it is done."""

from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from penstock.prep.preparing.preparing import prepare
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import LeftOut, TaskProgress, nan_samples, run_task
from penstock.readers.store_schema import ArrayNames
from tests.prep.preparing.raw import section, write_games


def test_a_slow_function_is_heard_of_before_a_batch_is_full(desk: Path, monkeypatch: pytest.MonkeyPatch):
    [game] = write_games(desk / "raw", [4])
    looks = count()
    slow_task = partial(run_task, clock=lambda: 0.6 * next(looks))  # as if 0.6 s lay between two looks at it
    monkeypatch.setattr("penstock.prep.preparing.crew.executing.run_task", slow_task)
    told: list[TaskProgress | LeftOut] = []
    monkeypatch.setattr(Watch, "hear", lambda self, event: told.append(event))

    prepare(section(desk, batch_size=100))

    assert told == [
        TaskProgress(0, 0, 0, str(game)),
        TaskProgress(0, 0, 2, str(game)),
        TaskProgress(0, 0, 4, str(game)),
    ]


def test_samples_with_features_that_are_nan_are_counted_once():
    nan = float("nan")
    arrays = {
        "strategic_features": np.array([[nan, nan], [1, 2], [3, 4]], np.float32),
        "strategic_features_one": np.array([nan, 1, nan]),
        "labels_move": np.array([1, 2, 3]),
        "others": np.array([nan, nan, nan]),
    }

    assert nan_samples(arrays, ArrayNames()) == 2
    assert nan_samples({"labels_move": arrays["labels_move"]}, ArrayNames()) == 0
