"""What reading, shuffling and batching take at most, under limits of 256 MiB, 512 MiB and 1 GiB.

    python benchmarks/memory_bound.py [--bytes 4GB] [--work DIR]

| what | bar |
|---|---|
| a Parquet file set of 4 GB (8 files, row groups of 65,536 rows) | within each limit |
| one file that is a single row group of 2 million rows | within each limit |
| 20 epochs over a part of it | the last ten take no more than 5 % more than the first ten |
| the same with worker processes, all of them counted | the same |

Each case runs in a process of its own. Bytes are those beyond what the process takes when everything is imported and
nothing is read: the peak that the system counts (VmHWM), with workers the sum over all processes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import random_rows

from penstock.config.sizes import GIB, MIB, format_size, parse_size

LIMITS = (256 * MIB, 512 * MIB, GIB)
SHUFFLE_BUFFER = "64MiB"
BATCH_ROWS = 8192
HUGE_ROWS = 2_000_000
EPOCHS = 20
GROWTH_BAR = 1.05


def main() -> int:
    """Measure, print a table, and fail where a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bytes", default="4GB")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(CASES[json.loads(options.case).pop("kind")](**_arguments(options.case))))
        return 0
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        files = random_rows.write_files(Path(folder) / "set", parse_size(options.bytes), num_files=8)
        huge = random_rows.write_files(
            Path(folder) / "huge", HUGE_ROWS * random_rows.ROW_BYTES, 1, row_group_rows=HUGE_ROWS
        )
        part = random_rows.write_files(Path(folder) / "part", 64 * MIB, 1)
        passed = [within(name, path, limit) for name, path in (("file set", files), ("one row group", huge))
                  for limit in LIMITS]  # fmt: skip
        passed += [flat("20 epochs", part, 0), flat("20 epochs, 2 workers", part, 2)]
    return 0 if all(passed) else 1


def within(name: str, path: str, limit_bytes: int) -> bool:
    """One epoch under a limit."""
    found = measure(kind="epoch", path=path, limit_bytes=limit_bytes)
    passed = found["peak_bytes"] <= limit_bytes
    print(
        f"{name:<22} limit {format_size(limit_bytes):>7}: took {format_size(found['peak_bytes']):>9}, "
        f"{found['peak_bytes'] / limit_bytes:.2f} of it; {found['rows']:,} rows in {found['seconds']:.1f} s"
        f"{'' if passed else '  ABOVE THE LIMIT'}",
        flush=True,
    )
    return passed


def flat(name: str, path: str, num_workers: int) -> bool:
    """Twenty epochs: what the last ten took, against the first ten."""
    peaks = measure(kind="epochs", path=path, num_workers=num_workers)["peaks"]
    first, last = max(peaks[: EPOCHS // 2]), max(peaks[EPOCHS // 2 :])
    passed = last <= GROWTH_BAR * first
    print(
        f"{name:<22} first ten took {format_size(first)}, last ten {format_size(last)}: "
        f"{last / first:.3f} (bar {GROWTH_BAR:.2f}){'' if passed else '  GROWS'}",
        flush=True,
    )
    return passed


def measure(**case: object) -> dict[str, object]:
    """Run a case in a fresh process."""
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _arguments(case: str) -> dict[str, object]:
    return {name: value for name, value in json.loads(case).items() if name != "kind"}


def one_epoch(path: str, limit_bytes: int) -> dict[str, float]:
    """Read, shuffle and cut everything once."""
    import penstock

    warm_up(path)
    start_bytes = status_bytes("VmRSS")
    reset_peak()
    data = penstock.read_parquet(path).shuffle(SHUFFLE_BUFFER, seed=7).batch(BATCH_ROWS).prefetch("16MiB")
    started_at = time.perf_counter()
    num_rows = sum(batch.num_rows for batch in data.memory(limit_bytes).to_arrow())
    seconds = time.perf_counter() - started_at
    return {"peak_bytes": status_bytes("VmHWM") - start_bytes, "rows": num_rows, "seconds": seconds}


def epochs(path: str, num_workers: int) -> dict[str, list[int]]:
    """The peak of each epoch, as the monitor of a run measures it: the whole tree of processes."""
    from measuring.loading import batches_of

    from penstock.runtime.memory import MemoryMonitor

    peaks = []
    with batches_of(path, SHUFFLE_BUFFER, BATCH_ROWS, num_workers) as batches:
        for epoch in range(EPOCHS):
            batches.set_epoch(epoch)
            with MemoryMonitor(GIB, interval_seconds=0.02) as monitor:
                assert sum(batch.num_rows for batch in batches) > 0
            peaks.append(monitor.report.peak_bytes)
    return {"peaks": peaks}


def warm_up(path: str) -> None:
    """Import everything, and start threads: reading the schema loads what reading rows needs."""
    import numpy as np

    import penstock

    assert penstock.read_parquet(path).schema
    small = penstock.from_arrays({"x": np.arange(100)}).shuffle("1MiB").batch(10).prefetch("1MiB")
    assert sum(len(batch["x"]) for batch in small) == 100


def status_bytes(name: str) -> int:
    """A figure of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def reset_peak() -> None:
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


CASES = {"epoch": one_epoch, "epochs": epochs}


if __name__ == "__main__":
    sys.exit(main())
