"""Stores merged from fixed batch files: the digest of every file, for each target."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import penstock

SIZES = (5, 7, 1, 12)

MERGES: dict[str, dict[str, Any]] = {
    "npy, heads in npz": {"target": "npy"},
    "npy, heads in npy": {"target": "npy", "heads": "npy"},
    "parquet": {"target": "parquet"},
    "ipc": {"target": "ipc"},
    "hdf5": {"target": "hdf5"},
    "npy, shuffled and split by group": {
        "target": "npy",
        "shuffle": True,
        "seed": 7,
        "splits": {"train": 0.5, "val": 0.25, "test": 0.25, "by": "group"},
    },
    "parquet, shuffled and split by sample": {
        "target": "parquet",
        "shuffle": True,
        "seed": 3,
        "splits": {"train": 0.75, "val": 0.25, "test": 0.0},
    },
    "npy, accumulative": {"target": "npy", "strategy": "accumulative"},
}


def write_batches(folder: Path) -> Path:
    """Some batch files of both layouts; their numbers follow from the row."""
    folder.mkdir()
    first = 0
    for index, size in enumerate(SIZES):
        rows = np.arange(first, first + size)
        arrays = {
            "strategic_features": ((rows[:, None] * 6 + np.arange(6)) / 8).astype(np.float32),
            "labels_move": (rows % 4).astype(np.int16),
            "labels_score": (rows * 0.5).astype(np.float32),
            "masks_move": ((rows[:, None] + np.arange(4)) % 2).astype(np.int8),
            "groups": (rows % 8).astype(np.uint64),
        }
        suffix = ".npz" if index == 1 else ".batch"
        penstock.save_batch(folder / f"batch_{index:04d}{suffix}", arrays)
        first += size
    return folder


def merged_files(folder: Path, name: str) -> dict[str, str]:
    """Merge as the name says; gives the digest of every file of the batches and of the store."""
    batches, store = write_batches(folder / "batches"), folder / "store"
    penstock.merge(batches, store, **MERGES[name])
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
