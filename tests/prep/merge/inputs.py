"""Batch files to merge, and what a store holds."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.readers.batch_files import read_header, save_batch
from tests.readers.batch_files.samples import game_arrays

SIZES = (5, 7, 1, 0, 12, 3)


def write_batches(folder: Path, sizes=SIZES, *, layout="native", compression="none", groups=False):
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
    return {name: np.concatenate([arrays[name] for arrays in batches]) for name in batches[0]}


def load_split(folder: Path, split="train"):
    """The arrays of a split as other libraries read them, by the names of batch files."""
    if (folder / f"{split}.h5").exists():
        return load_hdf5(folder / f"{split}.h5")
    if (folder / split).is_dir():
        return load_parts(sorted((folder / split).iterdir()))
    arrays = {"strategic_features": np.load(folder / f"X_{split}.npy")}
    for kind in ("labels", "masks"):
        with np.load(folder / f"{kind}_{split}.npz") as archive:
            arrays |= {f"{kind}_{head}": archive[head] for head in archive.files}
    return arrays


def load_hdf5(path: Path):
    """In the order of batch files: HDF5 sorts names."""
    import h5py

    with h5py.File(path) as file:
        arrays = {name: file[name][:] for name in file}
    return {name: arrays[name] for name in sorted(arrays, key=lambda name: name != "strategic_features")}


def load_parts(paths):
    tables = [
        pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
        for path in paths
    ]
    arrays = {}
    for name, column in zip(tables[0].column_names, pa.concat_tables(tables).columns, strict=True):
        is_list = pa.types.is_fixed_size_list(column.type)
        whole = column.combine_chunks()
        values = (whole.flatten() if is_list else whole).to_numpy(zero_copy_only=False)
        arrays[name] = values.reshape(len(column), column.type.list_size) if is_list else values
    return arrays


def all_bytes(folder: Path):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def damage(path):
    """Flip a bit of a mask so that nothing else shows it; gives a function that mends it."""
    position = read_header(path).arrays["masks_target"].offset
    before, content = path.stat(), bytearray(path.read_bytes())

    def write():
        content[position] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    write()
    return write
