"""Ways to make one array of each kind from batch files, each run in a process of its own.

    cd benchmarks; python -m measuring.merge_ways WAY INPUTS OUTPUTS

prints seconds, those of processors, and the peak memory at the start, when everything is imported, and at the end.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from measuring.merge_inputs import FILE_SAMPLES, MASK_WIDTHS
from measuring.resident import resident_peak_bytes
from penstock.prep.merge.merge_options import MergeOptions
from penstock.prep.merge.merging import merge


def penstock_merge(inputs: Path, outputs: Path) -> None:
    """The default: a journal, and nothing is done before it is on disk."""
    merge(inputs, outputs)


def penstock_not_waiting(inputs: Path, outputs: Path) -> None:
    """Without waiting for the disk."""
    merge(inputs, outputs, options=MergeOptions())


def penstock_shuffled(inputs: Path, outputs: Path) -> None:
    """In random order."""
    merge(inputs, outputs, options=MergeOptions(shuffle=True))


def load_and_write(inputs: Path, outputs: Path, waits: bool = False) -> None:
    """np.load each file, and write each of its arrays at its offset."""
    outputs.mkdir()
    paths = sorted(inputs.iterdir())
    files, offsets = {}, {}
    for number, path in enumerate(paths):
        with np.load(path) as archive:
            for name in archive.files:
                array = archive[name]
                if name not in files:
                    files[name] = (outputs / f"{name}.npy").open("wb")
                    shape = (len(paths) * FILE_SAMPLES, *array.shape[1:])
                    header = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
                    npy_format.write_array_header_1_0(files[name], header)
                    offsets[name] = files[name].tell()
                files[name].seek(offsets[name] + number * array.nbytes)
                files[name].write(array.data)
    for file in files.values():
        file.flush()
        if waits:
            os.fsync(file.fileno())
        file.close()


def load_and_write_and_wait(inputs: Path, outputs: Path) -> None:
    """The same, until all is on disk."""
    load_and_write(inputs, outputs, waits=True)


def accumulate(inputs: Path, outputs: Path) -> None:
    """np.load all files, concatenate, save."""
    outputs.mkdir()
    parts: dict[str, list[NDArray[np.generic]]] = {}
    for path in sorted(inputs.iterdir()):
        with np.load(path) as archive:
            for name in archive.files:
                parts.setdefault(name, []).append(archive[name])
    arrays = {name: np.concatenate(found) for name, found in parts.items()}
    np.save(outputs / "X_train.npy", arrays.pop("strategic_features"))
    for kind in ("labels", "masks"):
        found = {name: array for name, array in arrays.items() if name.startswith(kind)}
        np.savez(outputs / f"{kind}_train.npz", **found)  # type: ignore[arg-type]


def lists_of_dicts(inputs: Path, outputs: Path) -> None:
    """np.load lists of dicts, make arrays of them when all are there, save."""
    outputs.mkdir()
    samples: list[dict[str, dict[str, object]]] = []
    for path in sorted(inputs.iterdir()):
        with np.load(path, allow_pickle=True) as archive:
            samples.extend(archive["samples"])
    np.save(outputs / "X_train.npy", np.array([sample["features"] for sample in samples], np.float32))
    for kind, dtype in (("labels", np.int16), ("masks", np.int8)):
        found = {head: np.array([sample[kind][head] for sample in samples], dtype) for head in MASK_WIDTHS}
        np.savez(outputs / f"{kind}_train.npz", **found)  # type: ignore[arg-type]


WAYS: dict[str, Callable[[Path, Path], None]] = {
    way.__name__: way
    for way in (
        penstock_merge,
        penstock_not_waiting,
        penstock_shuffled,
        load_and_write,
        load_and_write_and_wait,
        accumulate,
        lists_of_dicts,
    )
}


def main() -> None:
    """Run one way, and print what it took."""
    way, inputs, outputs = WAYS[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3])
    start_bytes = resident_peak_bytes()
    started_at, busy_at = time.perf_counter(), time.process_time()
    way(inputs, outputs)
    seconds, busy_seconds = time.perf_counter() - started_at, time.process_time() - busy_at
    peak_bytes = resident_peak_bytes()
    print(json.dumps({"seconds": seconds, "busy": busy_seconds, "start": start_bytes, "peak": peak_bytes}))


if __name__ == "__main__":
    main()
