"""Batch files to merge, and what a store holds."""

from pathlib import Path

import numpy as np

from penstock.readers.batch_files import save_batch
from tests.readers.batch_files.samples import game_arrays

SIZES = (5, 7, 1, 0, 12, 3)


def write_batches(folder: Path, sizes=SIZES, *, layout="native", compression="none", groups=False):
    """Batch files of random samples; gives their arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, size in enumerate(sizes):
        arrays = game_arrays(size, seed=number)
        if groups:
            arrays["groups"] = np.random.default_rng(number).integers(0, 6, size).astype(np.uint64)
        suffix = {"native": ".batch", "npz": ".npz"}[layout]
        save_batch(folder / f"batch_{number:04d}{suffix}", arrays, layout=layout, compression=compression)
        written.append(arrays)
    return written


def concatenated(batches):
    """What a merge without splits must give."""
    return {name: np.concatenate([arrays[name] for arrays in batches]) for name in batches[0]}


def load_split(folder: Path, split="train"):
    """The arrays of a split as plain NumPy reads them, by the names of batch files."""
    arrays = {"strategic_features": np.load(folder / f"X_{split}.npy")}
    for kind in ("labels", "masks"):
        with np.load(folder / f"{kind}_{split}.npz") as archive:
            arrays |= {f"{kind}_{head}": archive[head] for head in archive.files}
    return arrays


def all_bytes(folder: Path):
    """Every file of a folder with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
