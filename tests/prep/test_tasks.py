"""Files in tasks."""

from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.sizes import KIB, MIB
from penstock.prep.prepare import prepare
from penstock.prep.tasks import LeftOut, TaskProgress, make_tasks, nan_samples, run_task
from penstock.prep.watch import Watch
from penstock.readers.files import DataFile
from penstock.readers.store_schema import ArrayNames
from tests.prep.raw import section, write_games


def files_of(sizes: list[int]) -> list[DataFile]:
    return [DataFile(f"game_{index}", size) for index, size in enumerate(sizes)]


def test_small_files_share_a_task_and_a_large_one_has_its_own():
    tasks = make_tasks(files_of([10 * KIB, 20 * KIB, 500 * MIB, 30 * KIB]))

    assert [[file.name for file in task.files] for task in tasks] == [
        ["game_0", "game_1"],
        ["game_2"],
        ["game_3"],
    ]


@given(st.lists(st.integers(0, 100 * MIB), max_size=50))
def test_every_file_is_in_one_task_in_order(sizes: list[int]):
    files = files_of(sizes)
    tasks = make_tasks(files)

    assert [file for task in tasks for file in task.files] == files
    assert [task.number for task in tasks] == list(range(len(tasks)))
    assert all(task.files for task in tasks)


def test_a_slow_function_is_heard_of_before_a_batch_is_full(desk: Path, monkeypatch: pytest.MonkeyPatch):
    [game] = write_games(desk / "raw", [4])
    looks = count()
    slow_task = partial(run_task, clock=lambda: 0.6 * next(looks))  # as if 0.6 s lay between two looks at it
    monkeypatch.setattr("penstock.prep.prepare.run_task", slow_task)
    told: list[TaskProgress | LeftOut] = []
    monkeypatch.setattr(Watch, "on_event", lambda self, event: told.append(event))

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
