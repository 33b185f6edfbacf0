"""Files in tasks."""

import numpy as np

from penstock.config.sizes import KIB, MIB
from penstock.prep.tasks import make_tasks, nan_samples
from penstock.readers.files import DataFile
from penstock.readers.store_schema import ArrayNames


def files_of(sizes: list[int]) -> list[DataFile]:
    return [DataFile(f"game_{index}", size) for index, size in enumerate(sizes)]


def test_small_files_share_a_task_and_a_large_one_has_its_own():
    tasks = make_tasks(files_of([10 * KIB, 20 * KIB, 500 * MIB, 30 * KIB]))

    assert [[file.name for file in task.files] for task in tasks] == [
        ["game_0", "game_1"],
        ["game_2"],
        ["game_3"],
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
