"""Memory of a merge for every target, order, split and kind of batch file, at two sizes.

    python benchmarks/merge_memory.py [--scale 0.2] [--work DIR]

Each merge runs in a process of its own that has loaded the libraries it needs. Bars: beyond that at most 64 MB, for
Parquet, whose writer has its own buffers, twice that, and in a shuffle on top what it was given; as a whole the same
within 10 % at a fifth of the size.
"""

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measuring.merge_inputs import FILE_SAMPLES, NUM_FILES, ROW_BYTES, write_native_inputs
from measuring.resident import resident_peak_bytes

from penstock.config.sizes import MIB, format_size
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge

MOST_BYTES = 64_000_000
MOST_DIFFERENCE = 0.10
SMALLER = 5
BY_GROUP = SplitShares(by="group")
LIBRARIES = {"parquet": "pyarrow.parquet", "ipc": "pyarrow", "hdf5": "h5py"}


@dataclass(frozen=True)
class Case:
    """How is merged, and from which batch files."""

    options: MergeOptions
    compression: str = "none"
    """Of the batch files."""

    @property
    def most_bytes(self) -> int:
        """The bar."""
        writer_bytes = MOST_BYTES if self.options.target == "parquet" else 0
        return MOST_BYTES + writer_bytes + (self.options.memory_bytes if self.options.shuffle else 0)

    def load_libraries(self) -> None:
        """Import what the merge would import."""
        if self.options.target in LIBRARIES:
            importlib.import_module(LIBRARIES[self.options.target])
        if self.compression != "none":
            importlib.import_module("pyarrow")


CASES = {
    "npy": Case(MergeOptions()),
    "npy, heads npy": Case(MergeOptions(heads="npy")),
    "npy, split by sample": Case(MergeOptions(splits=SplitShares())),
    "npy, split by group": Case(MergeOptions(splits=BY_GROUP)),
    "npy, shuffled in 48MiB": Case(MergeOptions(shuffle=True)),
    "npy, shuffled in 8MiB, split by group": Case(
        MergeOptions(shuffle=True, splits=BY_GROUP, memory_bytes=8 * MIB)
    ),
    "npy, from zstd": Case(MergeOptions(), "zstd"),
    "npy, from zstd, shuffled in 48MiB": Case(MergeOptions(shuffle=True), "zstd"),
    "parquet": Case(MergeOptions(target="parquet")),
    "parquet zstd, from zstd": Case(MergeOptions(target="parquet", compression="zstd"), "zstd"),
    "parquet, split by group": Case(MergeOptions(target="parquet", splits=BY_GROUP)),
    "parquet, shuffled in 48MiB": Case(MergeOptions(target="parquet", shuffle=True)),
    "ipc": Case(MergeOptions(target="ipc")),
    "ipc zstd, from zstd": Case(MergeOptions(target="ipc", compression="zstd"), "zstd"),
    "ipc, split by group": Case(MergeOptions(target="ipc", splits=BY_GROUP)),
    "ipc, shuffled in 48MiB": Case(MergeOptions(target="ipc", shuffle=True)),
    "hdf5": Case(MergeOptions(target="hdf5")),
    "hdf5, shuffled in 48MiB, split by group": Case(
        MergeOptions(target="hdf5", shuffle=True, splits=BY_GROUP)
    ),
}


@dataclass(frozen=True)
class Measured:
    """What one merge took."""

    seconds: float
    start: int
    peak: int

    @property
    def beyond(self) -> int:
        """The start of the process."""
        return self.peak - self.start


def main() -> int:
    """Measure, print one table, and fail above a bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--one", nargs=3, metavar=("CASE", "INPUTS", "OUTPUTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return measure(options.one[0], Path(options.one[1]), Path(options.one[2]))
    num_files = max(10, round(NUM_FILES * options.scale))
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        return 0 if all(compare(Path(name), num_files)) else 1


def measure(name: str, inputs: Path, outputs: Path) -> int:
    """One merge in this process."""
    case = CASES[name]
    case.load_libraries()
    start, started_at = resident_peak_bytes(), time.perf_counter()
    merge(inputs, outputs, options=case.options)
    seconds = time.perf_counter() - started_at
    print(json.dumps({"seconds": seconds, "start": start, "peak": resident_peak_bytes()}))
    return 0


def compare(work: Path, num_files: int) -> list[bool]:
    """All cases at both sizes; gives which of them hold their bars."""
    for compression in ("none", "zstd"):
        write_native_inputs(work / compression, num_files, compression)
        write_native_inputs(work / f"{compression}-smaller", num_files // SMALLER, compression)
    num_bytes = num_files * FILE_SAMPLES * ROW_BYTES
    print(f"{num_files:,} files, {format_size(num_bytes)}, and {num_files // SMALLER:,} files")
    print(f"| {'merge':<40} | {'seconds':>7} | {'memory':>8} | {f'at 1/{SMALLER}':>8} |\n|---|---|---|---|")
    return [holds(name, case, work) for name, case in CASES.items()]


def holds(name: str, case: Case, work: Path) -> bool:
    """Print one line, and whether it is within the bars."""
    whole = run(name, work / case.compression, work / "out")
    smaller = run(name, work / f"{case.compression}-smaller", work / "out")
    difference = whole.peak / smaller.peak - 1
    is_good = whole.beyond <= case.most_bytes and difference <= MOST_DIFFERENCE
    print(
        f"| {name:<40} | {whole.seconds:7.2f} | {format_size(whole.beyond):>8} | {format_size(smaller.beyond):>8} |"
        + ("" if is_good else f" above the bar: {format_size(case.most_bytes)}, {difference:.0%} apart"),
        flush=True,
    )
    return is_good


def run(name: str, inputs: Path, outputs: Path) -> Measured:
    """One merge in a process of its own, when what others wrote is on disk."""
    os.sync()
    command = [sys.executable, __file__, "--one", name, str(inputs), str(outputs)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    shutil.rmtree(outputs)
    return Measured(**json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
