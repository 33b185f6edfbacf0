"""Time and memory of merging batch files, at full size: 547,000 samples in 1,094 files, 2.4 GiB.

    python benchmarks/merge.py [--scale 1] [--rounds 3] [--work DIR]

Ways take turns, each in a process of its own and each time another first. When one begins, what was written before is
on disk and its input is in the memory of the system. `busy` are the seconds of processors: on a machine with other work
they tell more than those of the clock. Bars: at most 64 MB beyond the start of the process, the same within 10 % at a
tenth of the size; at most .75 of the time of np.load and a write at the offset, where both wait for the disk and where
neither does, and at most .25 of that of accumulating and concatenating. The default waits for the disk, and is held
against np.load and a write without waiting, too.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from measuring.merge_inputs import (
    FILE_SAMPLES,
    NUM_FILES,
    ROW_BYTES,
    write_inputs,
    write_old_inputs,
)

from penstock.config.sizes import format_size
from penstock.runtime.checksums import file_checksum

HERE = Path(__file__).parent
MOST_BYTES = 64_000_000
MOST_DIFFERENCE = 0.10
BARS = (
    ("penstock_merge", "load_and_write", 0.75),
    ("penstock_merge", "load_and_write_and_wait", 0.75),
    ("penstock_not_waiting", "load_and_write", 0.75),
    ("penstock_merge", "accumulate", 0.25),
)
WAYS = {
    "penstock_merge": "penstock merge",
    "penstock_not_waiting": "  without waiting for the disk",
    "penstock_shuffled": "  and shuffle",
    "load_and_write": "np.load, write at the offset",
    "load_and_write_and_wait": "  and wait for the disk",
    "accumulate": "accumulate and concatenate",
}
OLD_FILES = 22
"""Lists of dicts are measured on so many files, and told for all."""


@dataclass
class Measured:
    """What the rounds of one way took."""

    seconds: list[float] = field(default_factory=list)
    busy_seconds: list[float] = field(default_factory=list)
    """Of processors; other programs on the machine hardly change them."""
    beyond_bytes: list[int] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)

    def row(self, name: str, base_seconds: float, factor: float = 1.0) -> str:
        """A line of the table; `factor` is for all files where some were measured."""
        seconds = statistics.median(self.seconds) * factor
        busy_seconds = statistics.median(self.busy_seconds) * factor
        return (
            f"| {name:<34} | {seconds:8.2f} | {seconds / base_seconds:6.2f} | {busy_seconds:8.2f} | "
            f"{format_size(round(max(self.beyond_bytes) * factor)):>9} |"
        )


def main() -> int:
    """Measure, print one table, and fail above a bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    num_files = max(10, round(NUM_FILES * options.scale))
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        work = Path(name)
        write_inputs(work / "inputs", num_files)
        write_inputs(work / "tenth", max(1, num_files // 10))
        old_files = min(OLD_FILES, num_files)
        write_old_inputs(work / "old", old_files)
        found = {way: Measured() for way in (*WAYS, "tenth", "lists_of_dicts")}
        ways = deque(WAYS)
        for _ in range(options.rounds):
            ways.rotate(1)
            for way in ways:
                run(way, work / "inputs", work / "out", found[way])
            run("penstock_merge", work / "tenth", work / "out", found["tenth"])
        run("lists_of_dicts", work / "old", work / "out", found["lists_of_dicts"])
    print_table(found, num_files, old_files)
    return 0 if all(check(found)) else 1


def run(way: str, inputs: Path, outputs: Path, measured: Measured) -> None:
    """One way in a process of its own, when what others wrote is on disk and its input is in memory."""
    os.sync()
    for path in inputs.iterdir():
        file_checksum(path)
    command = [sys.executable, "-m", "measuring.merge_ways", way, str(inputs), str(outputs)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE)
    shutil.rmtree(outputs)
    figures = json.loads(done.stdout)
    measured.seconds.append(figures["seconds"])
    measured.busy_seconds.append(figures["busy"])
    measured.beyond_bytes.append(figures["peak"] - figures["start"])
    measured.peak_bytes.append(figures["peak"])


def print_table(found: dict[str, Measured], num_files: int, old_files: int) -> None:
    """All ways; the time of np.load and a write at the offset is 1."""
    base = statistics.median(found["load_and_write"].seconds)
    num_bytes = num_files * FILE_SAMPLES * ROW_BYTES
    print(f"{num_files:,} files, {num_files * FILE_SAMPLES:,} samples, {format_size(num_bytes)}")
    columns = f"{'seconds':>8} | {'ratio':>6} | {'busy':>8} | {'memory':>9}"
    print(f"| {'way':<34} | {columns} |\n|---|---|---|---|---|")
    for way, name in WAYS.items():
        print(found[way].row(name, base))
        if way == "penstock_merge":
            print(found["tenth"].row("  at a tenth of the size", base))
    times = f"({num_files / old_files:.0f} x {old_files} files)"
    print(found["lists_of_dicts"].row(f"lists of dicts {times}", base, num_files / old_files))


def check(found: dict[str, Measured]) -> list[bool]:
    """Print each bar with what was found, and whether it holds."""
    merged = found["penstock_merge"]
    beyond = max(merged.beyond_bytes)
    holds = [beyond <= MOST_BYTES]
    print(f"memory beyond the start: {beyond / 1e6:.1f} MB (bar {MOST_BYTES / 1e6:.0f})")
    difference = abs(max(merged.peak_bytes) / max(found["tenth"].peak_bytes) - 1)
    holds.append(difference <= MOST_DIFFERENCE)
    print(f"peak against that at a tenth of the size: {difference:.1%} apart (bar {MOST_DIFFERENCE:.0%})")
    for own, other, bar in BARS:
        pairs = zip(found[own].seconds, found[other].seconds, strict=True)
        ratio = statistics.median(one / another for one, another in pairs)
        holds.append(ratio <= bar)
        print(f"time of {own} against {other}: {ratio:.2f} (bar {bar:.2f})")
    return holds


if __name__ == "__main__":
    sys.exit(main())
