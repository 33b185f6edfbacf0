"""What worker processes of a preparation give and cost: samples per second and peak memory with 1 to 12 of them.

    python benchmarks/prep_workers.py [--samples 50000] [--workers 1 2 4 8 12] [--rounds 3] [--work DIR]

Replays of `penstock sample-data --kind game` become batch files of 500 samples with examples/game/replays.py.
Numbers of workers take turns, each preparation in a process of its own and a fresh folder. Of the rates the middle one
counts, from the first worker's start to the last batch file on disk; of peaks the highest, of all processes together
and as the preparation itself measures it. There is no bar on the rate, which is that of the machine's cores. Bars:
memory grows by at most 64 MiB for each further worker, and every number of workers writes the same bytes.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from penstock.config.sizes import MIB, format_size
from penstock.prep.sample_data.write import write_sample_data
from penstock.readers.store_schema import StoreManifest
from penstock.runtime.world import available_cores

EXTRACT_FOLDER = Path(__file__).parents[1] / "examples" / "game"
NUM_WORKERS = (1, 2, 4, 8, 12)
MOST_WORKER_BYTES = 64 * MIB


@dataclass
class Found:
    """What was measured with one number of workers, round after round."""

    samples_per_second: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    checksums: set[tuple[int, ...]] = field(default_factory=set)
    """Of all batch files, in order; one for each different result."""


def main() -> int:
    """Measure, print the table; 1 where a bar is missed."""
    options = parsed()
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        folder = Path(work)
        write_sample_data("game", options.samples, folder / "game")
        found: dict[int, Found] = {count: Found() for count in options.workers}
        for _ in range(options.rounds):
            for count, measured in found.items():
                measure(folder, count, measured)
    print_table(found, options)
    return 0 if has_bars(found) else 1


def parsed() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--workers", type=int, nargs="+", default=NUM_WORKERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--work", type=Path, default=None, help="where data are written; absent: as TMPDIR says"
    )
    return parser.parse_args()


def measure(folder: Path, num_workers: int, found: Found) -> None:
    """Prepare once, in a process of its own."""
    batches = folder / "batches"
    shutil.rmtree(batches, ignore_errors=True)
    run_file = folder / "prep.yaml"
    preprocessing = {
        "input_path": str(folder / "game" / "replays" / "*.jsonl"),
        "extract": "replays:samples",
        "intermediate_dir": str(batches),
        "num_workers": num_workers,
        "verbose": False,
    }
    run_file.write_text(yaml.safe_dump({"preprocessing": preprocessing}))
    command = [sys.executable, "-m", "penstock", "prep", str(run_file), "--skip-merge", "--plain"]
    subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(EXTRACT_FOLDER)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    lines = [json.loads(line) for line in (batches / "log.jsonl").read_text().splitlines()]
    events = {line["event"]: line for line in lines}
    if events["end"]["workers"] != num_workers:
        sys.exit(
            f"{events['end']['workers']} workers were started, not {num_workers}: give it more samples or memory"
        )
    found.samples_per_second.append(events["end"]["samples"] / events["end"]["seconds"])
    found.peak_bytes.append(events["memory"]["peak_bytes"])
    found.checksums.add(tuple(batch.checksum for batch in StoreManifest.read(batches).batches))


def print_table(found: dict[int, Found], options: argparse.Namespace) -> None:
    """As the page about preparation shows it."""
    print(f"samples: {options.samples:,}, rounds: {options.rounds}, cores: {available_cores()}\n")
    print("| workers | samples/s | peak memory |\n|---|---|---|")
    for count, measured in found.items():
        rate = statistics.median(measured.samples_per_second)
        print(f"| {count} | {rate:,.0f} | {format_size(max(measured.peak_bytes))} |")


def has_bars(found: dict[int, Found]) -> bool:
    """Whether memory grows no faster than it may, and whether all results are the same; says so."""
    fewest, most = min(found), max(found)
    added = max(found[most].peak_bytes) - max(found[fewest].peak_bytes)
    each_bytes = added // max(1, most - fewest)
    is_same = len(set.union(*(measured.checksums for measured in found.values()))) == 1
    print(f"\neach further worker takes {format_size(each_bytes)} (bar {format_size(MOST_WORKER_BYTES)})")
    print("every number of workers wrote the same bytes" if is_same else "RESULTS DIFFER")
    return is_same and each_bytes <= MOST_WORKER_BYTES


if __name__ == "__main__":
    raise SystemExit(main())
