"""Batch files of the size of a real case, made quickly: a few random ones, and copies of them."""

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.readers.batch_files import save_batch

NUM_FILES, FILE_SAMPLES = 1094, 500
NUM_FEATURES = 893
MASK_WIDTHS = {"type": 13, "unit": 60, "x": 150, "y": 150, "queue": 200, "target": 200, "ability": 320}
ROW_BYTES = 4 * NUM_FEATURES + 2 * len(MASK_WIDTHS) + sum(MASK_WIDTHS.values())
_DIFFERENT = 4


def write_inputs(folder: Path, num_files: int) -> None:
    """Uncompressed .npz files as plain NumPy writes them."""
    folder.mkdir(parents=True)
    for number in range(num_files):
        path = folder / f"batch_{number:04d}.npz"
        if number < _DIFFERENT:
            np.savez(path, **random_arrays(number))  # type: ignore[arg-type]
        else:
            shutil.copyfile(folder / f"batch_{number % _DIFFERENT:04d}.npz", path)


def write_native_inputs(folder: Path, num_files: int, compression: str) -> None:
    """Batch files as penstock prep writes them, with groups of ten samples."""
    folder.mkdir(parents=True)
    for number in range(num_files):
        path = folder / f"batch_{number:04d}.batch"
        if number < _DIFFERENT:
            groups = np.arange(FILE_SAMPLES, dtype=np.uint64) // 10
            save_batch(path, {**random_arrays(number), "groups": groups}, compression=compression)
        else:
            shutil.copyfile(folder / f"batch_{number % _DIFFERENT:04d}.batch", path)


def write_old_inputs(folder: Path, num_files: int) -> None:
    """The same as lists of dicts, pickled."""
    folder.mkdir(parents=True)
    for number in range(num_files):
        samples = as_samples(random_arrays(number % _DIFFERENT))
        np.savez(folder / f"batch_{number:04d}.npz", samples=np.array(samples, dtype=object))


def random_arrays(seed: int) -> dict[str, NDArray[np.generic]]:
    """The arrays of one file."""
    generator = np.random.default_rng(seed)
    arrays: dict[str, NDArray[np.generic]] = {
        "strategic_features": generator.random((FILE_SAMPLES, NUM_FEATURES), np.float32)
    }
    for head, width in MASK_WIDTHS.items():
        arrays[f"labels_{head}"] = generator.integers(0, width, FILE_SAMPLES).astype(np.int16)
    for head, width in MASK_WIDTHS.items():
        arrays[f"masks_{head}"] = generator.integers(0, 2, (FILE_SAMPLES, width)).astype(np.int8)
    return arrays


def as_samples(arrays: dict[str, NDArray[np.generic]]) -> list[dict[str, object]]:
    """One dict of lists for each sample."""
    columns = {name: array.tolist() for name, array in arrays.items()}
    return [
        {
            "features": columns["strategic_features"][row],
            "labels": {head: columns[f"labels_{head}"][row] for head in MASK_WIDTHS},
            "masks": {head: columns[f"masks_{head}"][row] for head in MASK_WIDTHS},
        }
        for row in range(FILE_SAMPLES)
    ]
