"""What a preparation tells at its end."""

from penstock.prep.tasks import TaskRecord
from penstock.prep.watch import PrepSummary
from penstock.readers.store_manifest import BatchRecord, InputRecord


def record(number: int, left_out: dict[str, str]) -> TaskRecord:
    inputs = (
        InputRecord(f"game_{number}", 100, 0, num_samples=500),
        *(InputRecord(path, 7, 0) for path in left_out),
    )
    batch = BatchRecord(f"batch_0000{number}_00000.batch", 500, 2 << 20, 0)
    return TaskRecord(number, inputs, (batch,), left_out, {"strategic_features": 0.25 * number})


def test_records_are_added_up():
    broken = {f"bad_{number}": f"bad_{number}: sample 0: no number" for number in range(7)}
    records = [record(0, {}), record(1, broken), record(2, {})]

    summary = PrepSummary(records, kept_tasks=1, new_samples=1000, num_workers=2, seconds=4.0)

    assert summary.lines() == [
        "prepared  1,500 samples of 3 files in 3 batch files, 6MiB",
        "time      4.0 s, 250 samples/s, 2 worker processes",
        "kept      1 of 3 tasks were done before",
        "float16   strategic_features: largest rounding error 0.5",
        "left out  7 files",
        *(f"          {broken[f'bad_{number}']}" for number in range(5)),
        "          and 2 more, see log.jsonl",
    ]
    assert summary.as_record() == {
        "files": 10,
        "samples": 1500,
        "batches": 3,
        "bytes_read": 349,
        "bytes_written": 6 << 20,
        "left_out": 7,
        "empty": 0,
        "nan_samples": 0,
        "workers": 2,
        "seconds": 4.0,
        "kept_tasks": 1,
    }


def test_what_is_strange_but_no_error_is_counted():
    inputs = (
        InputRecord("game_0", 1, 0, num_samples=1),
        InputRecord("game_1", 0, 0),
        InputRecord("game_2", 0, 0),
    )
    batch = BatchRecord("batch_00000_00000.batch", 1, 1024, 0)

    summary = PrepSummary([TaskRecord(0, inputs, (batch,), {}, {}, nan_samples=1)], 0, 1, 0, 1.0)

    assert summary.lines() == [
        "prepared  1 sample of 3 files in 1 batch file, 1KiB",
        "time      1.0 s, 1 samples/s, one process",
        "empty     2 files gave no samples, first game_1",
        "NaN       1 sample with features that are NaN",
    ]
