"""What batch files of a game cost: memory, disk, and time to write and to read, way by way.

    python benchmarks/batch_files.py [--rounds 5] [--samples 500]

| claim | against | bar |
|---|---|---|
| arrays to a batch file of the default layout (native, none) | np.savez_compressed | 3 times as fast |
| samples of Python lists to a batch file of the default layout | the same to np.savez_compressed | 3 times as fast |
| samples of NumPy arrays to a batch file of the default layout | the same to np.savez_compressed | 3 times as fast |
| peak resident memory of a process that writes samples | after 10 batches, and after 100 | the same within 1 % |

Our files are on disk (fsync) when writing ends; pickle and NumPy leave that to the system. Ways take turns, round
after round; the table shows the best time of each, and of ratios the middle one counts. Memory is what a loaded batch
holds.
"""

import argparse
import functools
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from measuring.game import SAMPLE_BYTES, game_arrays, game_samples
from measuring.resident import resident_peak_bytes
from measuring.rounds import alternate, ratios

from penstock.config.sizes import MIB, format_size
from penstock.readers.batch_files import load_batch, save_batch
from penstock.readers.samples import BatchBuilder, inferred_schema

LEAST_RATIO = 3.0
CLAIM_ROUNDS = 3
"""So many times more rounds for claims than for the table, which has slow ways in it."""
FEW_BATCHES, MANY_BATCHES = 10, 100
MOST_GROWTH = 1.01
DEFAULT = "native, none"
OUR_WAYS: dict[str, dict[str, Any]] = {
    "npz, none": {"layout": "npz"},
    "npz, zlib 1": {"layout": "npz", "compression": "zlib", "level": 1},
    "npz, zlib 6": {"layout": "npz", "compression": "zlib", "level": 6},
    "npz, zlib 9": {"layout": "npz", "compression": "zlib", "level": 9},
    "native, zlib 1": {"compression": "zlib", "level": 1},
    "native, zstd 1": {"compression": "zstd", "level": 1},
    "native, zstd 9": {"compression": "zstd", "level": 9},
    "native, lz4": {"compression": "lz4"},
    "native, none": {},
}

Samples = list[dict[str, Any]]


@dataclass(frozen=True)
class Way:
    """A form of batch files."""

    write: Callable[[Path], Any]
    read: Callable[[Path], Any]


def main() -> int:
    """Measure, print a table and the claims, and fail below a bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--flat", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flat:
        write_many(options.flat, options.samples)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        passed = [compare(Path(folder), options)]
        passed += [writes_faster(Path(folder), options, as_lists) for as_lists in (True, False)]
        passed.append(stays_flat(Path(folder), options))
    return 0 if all(passed) else 1


def compare(folder: Path, options: argparse.Namespace) -> bool:
    """All ways beside each other, writing from what they keep and reading back to it."""
    arrays = game_arrays(options.samples)
    ways = every_way(arrays)
    paths = {name: folder / f"table_{number}" for number, name in enumerate(ways)}
    num = options.samples
    writing = alternate(
        {name: counted(functools.partial(way.write, paths[name]), num) for name, way in ways.items()},
        options.rounds,
    )
    reading = alternate(
        {name: counted(functools.partial(way.read, paths[name]), num) for name, way in ways.items()},
        options.rounds,
    )
    print(f"{num} samples of {SAMPLE_BYTES} bytes, {format_size(num * SAMPLE_BYTES)} as arrays")
    print(f"{'':<24}{'memory':>10}{'disk':>10}{'write':>12}{'read':>12}")
    for name, way in ways.items():
        held = held_bytes(functools.partial(way.read, paths[name]))
        write_ms, read_ms = (1e3 * num / max(rates[name]) for rates in (writing, reading))
        print(
            f"{name:<24}{held / MIB:>6.1f} MiB{paths[name].stat().st_size / MIB:>6.2f} MiB"
            f"{write_ms:>9.1f} ms{read_ms:>9.1f} ms"
        )
    return is_best_choice(paths, writing, reading)


def every_way(arrays: Mapping[str, Any]) -> dict[str, Way]:
    """Lists of dicts as of old, what NumPy writes, and ours."""
    samples = list(game_samples(dict(arrays), as_lists=True))
    ways = {
        "pickled dicts of lists": Way(functools.partial(write_pickle, samples), read_pickle),
        "np.savez": Way(functools.partial(write_numpy, np.savez, arrays), read_numpy),
        "np.savez_compressed": Way(functools.partial(write_numpy, np.savez_compressed, arrays), read_numpy),
    }
    for name, settings in OUR_WAYS.items():
        ways[name] = Way(lambda path, settings=settings: save_batch(path, arrays, **settings), load_batch)
    return ways


def is_best_choice(
    paths: Mapping[str, Path], writing: Mapping[str, list[float]], reading: Mapping[str, list[float]]
) -> bool:
    """Say what follows from the table, and whether the default is right."""
    fastest = max(OUR_WAYS, key=lambda name: max(writing[name]) * max(reading[name]))
    smallest = min(OUR_WAYS, key=lambda name: paths[name].stat().st_size)
    faster = [
        statistics.median(ratios(rates, DEFAULT, "np.savez_compressed")) for rates in (writing, reading)
    ]
    size = paths[DEFAULT].stat().st_size / paths["np.savez_compressed"].stat().st_size
    print(
        f"fastest to write and read: {fastest}; smallest: {smallest}\n"
        f"default: {DEFAULT}: {faster[0]:.0f} times as fast as np.savez_compressed to write, {faster[1]:.0f} times "
        f"to read, for {size:.1f} times the disk; and a merge copies its bytes as they are"
    )
    return faster[0] >= LEAST_RATIO


def writes_faster(folder: Path, options: argparse.Namespace, as_lists: bool) -> bool:
    """From dicts to a file: the builder and the default layout against arrays built by hand and savez_compressed."""
    samples = list(game_samples(game_arrays(options.samples), as_lists))
    builder = BatchBuilder(inferred_schema(samples[0]), options.samples)
    ways = {
        "np.savez_compressed": lambda: write_numpy(np.savez_compressed, stacked(samples), folder / "peer"),
        "BatchBuilder": lambda: write_built(builder, samples, folder / "ours"),
    }
    rates = alternate(
        {name: counted(way, options.samples) for name, way in ways.items()}, CLAIM_ROUNDS * options.rounds
    )
    found = ratios(rates, "BatchBuilder", "np.savez_compressed")
    ratio, rate = statistics.median(found), statistics.median(rates["BatchBuilder"])
    print(
        f"samples of {'Python lists' if as_lists else 'NumPy arrays'}: {rate:,.0f} samples/s, {ratio:.1f} times "
        f"those of np.savez_compressed ({min(found):.1f} to {max(found):.1f} in {len(found)} rounds; bar "
        f"{LEAST_RATIO:.1f}){'' if ratio >= LEAST_RATIO else '  BELOW THE BAR'}",
        flush=True,
    )
    return ratio >= LEAST_RATIO


def stays_flat(folder: Path, options: argparse.Namespace) -> bool:
    """The peak of a process's memory after many batches is that after a few."""
    command = [sys.executable, __file__, "--samples", str(options.samples), "--flat", str(folder / "flat")]
    few, many = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    passed: bool = many <= few * MOST_GROWTH
    print(
        f"resident memory of a process that makes samples and writes them: {format_size(few)} at most in "
        f"{FEW_BATCHES} batches, {format_size(many)} in {MANY_BATCHES}{'' if passed else '  IT GROWS'}"
    )
    return passed


def write_many(path: Path, num_samples: int) -> None:
    """What `stays_flat` runs in a process of its own: samples come and go, as in a worker of a preparation."""
    arrays = game_arrays(num_samples)
    builder = BatchBuilder(inferred_schema(next(game_samples(arrays, as_lists=True))), num_samples)
    peaks = []
    for number in range(1, MANY_BATCHES + 1):
        write_built(builder, game_samples(arrays, as_lists=number % 2 == 0), path)
        if number in (FEW_BATCHES, MANY_BATCHES):
            peaks.append(resident_peak_bytes())
    print(json.dumps(peaks))


def write_built(builder: BatchBuilder, samples: Iterable[dict[str, Any]], path: Path) -> None:
    """Samples through a builder to a file."""
    for sample in samples:
        builder.add(sample)
    save_batch(path, builder.take())


def stacked(samples: Samples) -> dict[str, Any]:
    """The arrays of samples, as one writes it by hand."""
    heads = samples[0]["labels"]
    return {
        "strategic_features": np.array([sample["features"] for sample in samples], np.float32),
        **{
            f"labels_{head}": np.array([sample["labels"][head] for sample in samples], np.int16)
            for head in heads
        },
        **{
            f"masks_{head}": np.array([sample["masks"][head] for sample in samples], np.int8)
            for head in heads
        },
    }


def write_numpy(save: Callable[..., None], arrays: Mapping[str, Any], path: Path) -> None:
    """With NumPy's own function, to a name without its suffix."""
    with path.open("wb") as stream:
        save(stream, **arrays)


def read_numpy(path: Path) -> dict[str, Any]:
    """All arrays of the file."""
    with np.load(path) as archive:
        return dict(archive)


def write_pickle(samples: Samples, path: Path) -> None:
    """As batch files of old."""
    path.write_bytes(pickle.dumps(samples))


def read_pickle(path: Path) -> Samples:
    """Only what this script wrote."""
    samples: Samples = pickle.loads(path.read_bytes())  # noqa: S301
    return samples


def counted(call: Callable[[], Any], num_samples: int) -> Callable[[], int]:
    """The call, as `alternate` wants it."""

    def run() -> int:
        call()
        return num_samples

    return run


def held_bytes(read: Callable[[], Any]) -> int:
    """What a loaded batch takes, of Python's, NumPy's and Arrow's memory."""
    arrow_before = pa.total_allocated_bytes()
    tracemalloc.start()
    loaded = read()
    held = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - arrow_before
    tracemalloc.stop()
    del loaded
    return held


if __name__ == "__main__":
    sys.exit(main())
