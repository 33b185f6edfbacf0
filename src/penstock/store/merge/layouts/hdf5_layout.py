"""HDF5 stores: train.h5 with a data set for each array, whose values lie behind each other as in a `.npy` file.

The library lays out the file once, empty and sparse. What it wrote around the places of the values is kept, and the
values go to their places like those of any other file: by any process, in any order, and again after a kill.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError
from penstock.store.merge.layouts.array_names import check_file_name
from penstock.store.merge.layouts.store_file import Checksums, Fixed, Place
from penstock.store.merge.layouts.zip_layout import ALIGNMENT_BYTES
from penstock.store.schema import ArraySpec, StoreSchema


@dataclass(frozen=True, slots=True)
class Hdf5File:
    """All arrays of a split."""

    name: str
    places: tuple[Place, ...]
    """In the order in which they lie in the file."""
    fixed: tuple[Fixed, ...]
    """What lies between them."""
    num_bytes: int

    def pieces(self, checksums: Checksums) -> Iterator[Fixed | Place]:
        """The whole file in order."""
        pieces: list[Fixed | Place] = [*self.fixed, *self.places]
        yield from sorted(pieces, key=lambda piece: piece.offset)


def hdf5_files(schema: StoreSchema, num_rows: Mapping[str, int]) -> tuple[Hdf5File, ...]:
    """All files of a store with so many rows in each split."""
    for spec in schema.arrays:
        check_file_name(spec.name, spec.name, "a data set")
    return tuple(_hdf5_file(f"{split}.h5", schema, split, count) for split, count in num_rows.items())


def _hdf5_file(name: str, schema: StoreSchema, split: str, num_rows: int) -> Hdf5File:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        offsets = _lay_out(path, schema, num_rows)
        num_bytes = path.stat().st_size
        places = tuple(
            Place(spec, split, num_rows, name, spec.name, num_bytes if offset is None else offset)
            for spec, offset in zip(schema.arrays, offsets, strict=True)
        )
        in_order = tuple(sorted(places, key=lambda place: place.offset))
        return Hdf5File(name, in_order, tuple(_between(path, in_order, num_bytes)), num_bytes)


def _lay_out(path: Path, schema: StoreSchema, num_rows: int) -> list[int | None]:
    """Write an empty file; gives where the values of each array belong, None where there are none."""
    h5py = _library()
    try:
        with h5py.File(path, "w", alignment_threshold=1, alignment_interval=ALIGNMENT_BYTES) as file:
            return [_add(h5py, file, spec, num_rows) for spec in schema.arrays]
    except (OSError, RuntimeError) as error:
        raise DataError(
            f"{path.parent.parent}: an empty HDF5 file of the size of {path.name} cannot be made there: "
            f"{_reason(error)}; mend that, set TMPDIR to another folder, or merge to npy"
        ) from error


def _reason(error: Exception) -> str:
    """In a few words; the library tells of its own workings, in several lines."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else str(error).partition("\n")[0]


def _add(h5py: Any, file: Any, spec: ArraySpec, num_rows: int) -> int | None:
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.CONTIGUOUS)
    how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    how.set_obj_track_times(False)
    try:
        kind = h5py.h5t.py_create(spec.dtype, logical=True)
    except TypeError as error:
        raise DataError(
            f"array '{spec.name}' is {spec}, which target hdf5 does not hold; leave it out, or merge to npy"
        ) from error
    space = h5py.h5s.create_simple(spec.shape(num_rows))
    offset: int | None = h5py.h5d.create(file.id, spec.name.encode(), kind, space, how).get_offset()
    return offset


def _between(path: Path, places: tuple[Place, ...], num_bytes: int) -> Iterator[Fixed]:
    """The bytes of a file that are no values."""
    with path.open("rb") as stream:
        position = 0
        for start, end in [
            *((place.offset, place.offset + place.num_bytes) for place in places),
            (num_bytes,) * 2,
        ]:
            if start > position:
                yield Fixed(position, os.pread(stream.fileno(), start - position, position))
            position = max(position, end)


def _library() -> Any:
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigError.at("target", "hdf5 needs h5py; install penstock[hdf5], or choose npy") from error
    return h5py
