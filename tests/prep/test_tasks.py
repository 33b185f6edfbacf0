"""Files in tasks, and what the records of tasks add up to."""

import numpy as np

from penstock.config.sizes import KIB, MIB
from penstock.prep.tasks import TaskRecord, make_tasks, nan_samples
from penstock.prep.watch import PrepSummary
from penstock.readers.files import DataFile
from penstock.readers.store_schema import ArrayNames, BatchRecord, InputRecord


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


def record(number: int, left_out: dict[str, str]) -> TaskRecord:
    inputs = (
        InputRecord(f"game_{number}", 100, 0, num_samples=500),
        *(InputRecord(path, 7, 0) for path in (*left_out, f"empty_{number}")),
    )
    batch = BatchRecord(f"batch_0000{number}_00000.batch", 500, 2 << 20, 0)
    errors = {"strategic_features": 0.25 * number}
    return TaskRecord(number, inputs, (batch,), left_out, errors, nan_samples=number // 2)


def test_records_are_added_up():
    broken = {f"bad_{number}": f"bad_{number}: sample 0: no number" for number in range(7)}
    records = [record(0, {}), record(1, broken), record(2, {})]

    summary = PrepSummary(records, kept_tasks=1, new_samples=1000, num_workers=2, seconds=4.0)

    assert summary.lines() == [
        "prepared  1,500 samples of 6 files in 3 batch files, 6MiB",
        "time      4.0 s, 250 samples/s, 2 worker processes",
        "kept      1 of 3 tasks were done before",
        "float16   strategic_features: largest rounding error 0.5",
        "empty     3 files gave no samples, first empty_0",
        "NaN       1 sample with features that are NaN",
        "left out  7 files",
        *(f"          {broken[f'bad_{number}']}" for number in range(5)),
        "          and 2 more, see log.jsonl",
    ]
