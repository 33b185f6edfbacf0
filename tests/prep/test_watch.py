"""What a preparation tells at its end."""

from penstock.prep.tasks import TaskRecord
from penstock.prep.watch import PrepSummary
from penstock.readers.store_manifest import BatchRecord, InputRecord


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
