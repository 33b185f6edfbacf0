"""What each knob of the data path does to its rate and its memory.

    python benchmarks/tuning.py [--rows 2000000] [--rounds 3] [--work DIR]

Criteo-like rows as Batch; one knob at a time is turned, everything else stays as it is: batches of 8,192 rows, no
shuffle, no workers, prefetch as planned. Each measurement is an epoch in a process of its own, after one that is not
counted; rates are medians over rounds in which all settings take turns, as a ratio to the first line. Memory is the
peak of the process tree beyond what importing took. Fails where a setting changes how many rows there are.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import criteo

from penstock.config.sizes import format_size

SETTINGS: dict[str, dict[str, object]] = {
    "as it is": {},
    "batch_size 1024": {"batch_size": 1024},
    "batch_size 65536": {"batch_size": 65_536},
    "prefetch 4MiB": {"prefetch": "4MiB"},
    "prefetch 256MiB": {"prefetch": "256MiB"},
    "shuffle_buffer 16MiB": {"shuffle": True, "shuffle_buffer": "16MiB"},
    "shuffle_buffer 64MiB": {"shuffle": True, "shuffle_buffer": "64MiB"},
    "shuffle_buffer 256MiB": {"shuffle": True, "shuffle_buffer": "256MiB"},
    "num_workers 1": {"num_workers": 1},
    "num_workers 2": {"num_workers": 2},
    "pin_memory false": {"pin_memory": False},
}


def main() -> int:
    """Measure all settings and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return 0
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        path = criteo.write_parquet(Path(folder) / "data", options.rows, num_files=4)
        found = {name: [] for name in SETTINGS}
        for _ in range(options.rounds):
            for name in SETTINGS:
                found[name].append(in_its_own_process(path, name))
    base = statistics.median(one["rate"] for one in found["as it is"])
    for name, measured in found.items():
        rate = statistics.median(one["rate"] for one in measured)
        peak_bytes = max(int(one["bytes"]) for one in measured)
        print(f"| {name:<22} | {rate / base:5.2f} | {format_size(peak_bytes):>9} |")
    return 0 if {one["rows"] for each in found.values() for one in each} == {options.rows} else 1


def in_its_own_process(path: str, name: str) -> dict[str, float]:
    """Run this script for one setting."""
    command = [sys.executable, __file__, "--one", path, name]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(path: str, name: str) -> dict[str, float]:
    """The second of two epochs: rows per second, and bytes beyond the start."""
    import penstock
    from penstock.run.dataloader import create_dataloader
    from penstock.runtime.memory import MemoryMonitor

    turned = {f"data_config.{key}": value for key, value in SETTINGS[name].items()}
    edits = {"train_input_path": path, "data_config.batch_size": 8192, "data_config.num_workers": 0} | turned
    run = penstock.load_run(criteo.RUN_FILE, edits)
    with MemoryMonitor(2**40, interval_seconds=0.02) as monitor, create_dataloader(run) as batches:
        for epoch in range(2):
            batches.set_epoch(epoch)
            started_at = time.perf_counter()
            num_rows = sum(batch.num_rows for batch in batches)
            seconds = time.perf_counter() - started_at
    report = monitor.report
    return {"rows": num_rows, "rate": num_rows / seconds, "bytes": report.peak_bytes - report.start_bytes}


if __name__ == "__main__":
    sys.exit(main())
