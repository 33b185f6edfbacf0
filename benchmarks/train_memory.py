"""Peak memory of `penstock train` under a limit of 1 GiB, on 1 and on 5 million rows.

    python benchmarks/train_memory.py [--rows 1000000 5000000] [--memory 1GiB] [--work DIR]

Bars: every run ends within its limit, and the largest takes no more than 10 % more than the smallest.
Bytes are those of the whole process tree; what importing torch and torchrec takes is part of them, and shown apart.
Row groups are of one size and evaluations come at one pace: the number of rows is the only thing that differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from penstock.config.sizes import format_size, parse_size

RUN_FILE = Path(__file__).parent.parent / "examples" / "quickstart.yaml"
GROWTH_BAR = 1.10


def main() -> int:
    """Measure, print a table, and fail below the bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        peaks = {rows: measure(Path(folder), rows, options.memory) for rows in options.rows}
    limit = parse_size(options.memory)
    growth = peaks[max(peaks)] / peaks[min(peaks)]
    print(f"within the limit: {max(peaks.values()) / limit:.2f} of it at most (bar 1.00)")
    print(f"growth from {min(peaks):,} to {max(peaks):,} rows: {growth:.3f} (bar {GROWTH_BAR:.2f})")
    return 0 if max(peaks.values()) <= limit and growth <= GROWTH_BAR else 1


def measure(folder: Path, num_rows: int, memory: str) -> int:
    """Generate, train, and read the peak that the run measured of itself."""
    data, model_dir = folder / f"data-{num_rows}", folder / f"run-{num_rows}"
    penstock("sample-data", "--rows", str(num_rows), "--out", data, "--row_group_rows", "16384")
    inputs = ["--train_input_path", f"{data}/train/*.parquet", "--eval_input_path", f"{data}/test/*.parquet"]
    started_at = time.perf_counter()
    cadence = ["--set", "train_config.eval_steps=200", "--set", "train_config.save_checkpoints_steps=200"]
    penstock("train", RUN_FILE, *inputs, *cadence, "--model_dir", model_dir, "--memory", memory)
    seconds = time.perf_counter() - started_at
    records = [json.loads(line) for line in (model_dir / "log.jsonl").read_text().splitlines()]
    end = records[-1]["memory"]
    start = records[0]["planned_bytes"]["process"]
    stages = ", ".join(f"{name} {format_size(size)}" for name, size in end["by_stage"].items())
    print(
        f"{num_rows:>10,} rows: peak {format_size(end['peak_bytes'])} of {memory} in {seconds:.0f} s; "
        f"imports alone {format_size(start)}; by stage: {stages}",
        flush=True,
    )
    return int(end["peak_bytes"])


def penstock(*words: str | Path) -> None:
    """Run a command; its errors are ours."""
    subprocess.run([sys.executable, "-m", "penstock", *map(str, words)], check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
