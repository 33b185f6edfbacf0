"""Batch files: some arrays with the same samples in one file, native or `.npz`.

`read_header` reads no value: it gives the type, shape, checksum and offset of each array, so that a merge copies bytes.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.config.errors import ConfigError, DataError
from penstock.readers.batch_layouts import (
    COMPRESSIONS,
    NATIVE_MAGIC,
    ZIP_MAGICS,
    BatchArray,
    BatchHeader,
    Values,
    check_lengths,
    decompressed,
    read_native_header,
    read_npz_header,
    write_native,
    write_npz,
)
from penstock.readers.pickled_samples import PickledFile, holds_pickle, load_pickled
from penstock.readers.store_schema import BatchRecord, DamagedFile, StoreSchema
from penstock.runtime.durable import replacing

SUFFIXES = {"native": ".batch", "npz": ".npz"}

_LEVELS = {"zlib": (0, 9), "zstd": (1, 22), "lz4": (1, 12)}


def save_batch(
    path: str | Path,
    arrays: Mapping[str, Any],
    *,
    layout: str | None = None,
    compression: str = "none",
    level: int | None = None,
) -> BatchRecord:
    """Write arrays to a file that appears when it is whole and on disk, in place of one that may be there.

    `arrays` has arrays of numbers by their names; the first axis of each counts samples, and all have the same
    number. Their bytes go to the file without a copy. `layout` is native or npz, which `np.load` reads; absent, it is
    npz where the path ends so. `compression` is none or zlib, in native files also zstd or lz4; `level` is how hard to
    compress: zlib 0 to 9, zstd 1 to 22, lz4 1 to 12; absent, as usual there.

    Returns what a manifest keeps of the file: its name, samples, bytes, and a checksum of names, types and values.
    DataError says which array cannot be written, or why the file cannot; nothing is left of it then.
    """
    path = Path(path)
    layout = layout or ("npz" if path.suffix == SUFFIXES["npz"] else "native")
    check_layout(layout, compression, level)
    found = _checked_arrays(str(path), arrays)
    try:
        with replacing(path) as stream:
            if layout == "native":
                return write_native(path, stream, found, compression, level).record
            write_npz(stream, found, compression, level)
            num_bytes = stream.tell()
            stream.flush()
            stream.seek(0)
            return read_npz_header(path, stream, num_bytes).record
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; nothing is left of it"
        ) from error


def load_batch(
    path: str | Path,
    *,
    allow_pickle: bool = False,
    mmap: bool = False,
    schema: StoreSchema | None = None,
) -> dict[str, Values]:
    """The arrays of a batch file by their names: native or `.npz`, ours or NumPy's, by its content.

    Every value is checked against its checksum, and the arrays can be changed. With `mmap`, arrays that are not
    compressed are read only when and where they are looked at: they are read-only, and checksums are not checked.

    With `allow_pickle` also old files of pickled samples are converted (`.npz`, `.npy`, `.pkl`), through an unpickler
    that knows plain data alone. `schema` is for these, in place of that of their first sample.

    DataError names the file, and the array, where it is missing, cut short, damaged or no batch file.
    """
    path = Path(path)
    header = _header_unless_pickle(path)
    if header is None or header.has_objects:
        if not allow_pickle:
            raise PickledFile.at_path(path)
        return load_pickled(path, schema)
    return {array.name: read_array(header, array, mmap=mmap) for array in header.arrays.values()}


def read_header(path: str | Path) -> BatchHeader:
    """What is in a batch file, from its header alone; `PickledFile` where it holds pickled samples."""
    header = _header_unless_pickle(Path(path))
    if header is None or header.has_objects:
        raise PickledFile.at_path(Path(path))
    return header


def is_pickled(path: str | Path) -> bool:
    """Whether a file is an old one, with pickled samples in it; nothing of it is unpickled."""
    header = _header_unless_pickle(Path(path))
    return header is None or header.has_objects


def read_array(header: BatchHeader, array: BatchArray, *, mmap: bool = False) -> Values:
    """The values of one array, decompressed and checked; with `mmap` as in `load_batch`."""
    if mmap and array.is_copyable:
        if array.array_bytes == 0:
            return np.empty(array.shape, array.dtype)
        return np.memmap(header.path, dtype=array.dtype, mode="r", offset=array.offset, shape=array.shape)
    stored = np.fromfile(header.path, dtype=np.uint8, count=array.num_bytes, offset=array.offset)
    if array.compression != "none":
        try:
            stored = np.frombuffer(decompressed(header.layout, array, stored.data), np.uint8)
        except ValueError as error:
            raise DamagedFile(
                f"{header.path}: array '{array.name}' is damaged: {str(error).rstrip('.')}",
                "write the file again",
            ) from error
    check_values(header, array, zlib.crc32(stored.data))
    return stored.view(array.dtype).reshape(array.shape, order="F" if array.is_column_major else "C")


def check_values(header: BatchHeader, array: BatchArray, checksum: int) -> None:
    if checksum != array.checksum:
        raise DamagedFile(
            f"{header.path}: array '{array.name}' is damaged: its checksum is {checksum:08x}, "
            f"not {array.checksum:08x}",
            "write the file again",
        )


def check_layout(layout: str, compression: str, level: int | None) -> None:
    if layout not in SUFFIXES:
        raise ConfigError(f"layout is '{layout}'; known: {', '.join(SUFFIXES)}")
    check_compression(compression, level)
    if layout == "npz" and compression not in ("none", "zlib"):
        raise ConfigError(
            f"layout npz cannot have compression {compression}: NumPy reads none and zlib; "
            "choose one of these, or layout native"
        )


def check_compression(compression: str, level: int | None) -> None:
    if compression not in COMPRESSIONS:
        raise ConfigError(f"compression is '{compression}'; known: {', '.join(COMPRESSIONS)}")
    if level is None:
        return
    if compression == "none":
        raise ConfigError(
            f"compression level {level} without compression changes nothing; "
            "leave it out or choose zlib, zstd or lz4"
        )
    low, high = _LEVELS[compression]
    if level not in range(low, high + 1):
        raise ConfigError(f"compression level is {level!r}; {compression} has {low} to {high}")


def _checked_arrays(file: str, arrays: Mapping[str, Any]) -> dict[str, Values]:
    if not isinstance(arrays, Mapping):
        raise DataError(f"{file}: arrays have type {type(arrays).__name__}; give a dict from names to arrays")
    if not arrays:
        raise DataError(f"{file}: there are no arrays to write")
    found = {}
    for name, values in arrays.items():
        if not name or not isinstance(name, str):
            raise DataError(f"{file}: an array is called {name!r}; names of arrays are text")
        try:
            found[name] = np.asarray(values)
        except ValueError:
            raise DataError(f"{file}: array '{name}' has rows of different lengths") from None
        if found[name].dtype.hasobject or found[name].dtype.names:
            raise DataError(
                f"{file}: array '{name}' has dtype {found[name].dtype}; give numbers "
                "(samples_to_arrays makes arrays of samples)"
            )
    check_lengths(file, {name: array.shape for name, array in found.items()})
    return found


def _header_unless_pickle(path: Path) -> BatchHeader | None:
    try:
        with path.open("rb", buffering=0) as stream:
            file_bytes = stream.seek(0, 2)
            stream.seek(0)
            magic = stream.read(len(NATIVE_MAGIC))
            stream.seek(0)
            raw: Any = stream
            if magic == NATIVE_MAGIC:
                return read_native_header(path, raw, file_bytes)
            if magic.startswith(ZIP_MAGICS):
                return read_npz_header(path, raw, file_bytes)
            if holds_pickle(path, magic):
                return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    beginning = f"it begins with {magic!r}" if magic else "it is empty"
    raise DamagedFile(
        f"{path}: is no batch file, neither native nor .npz: {beginning}", "write it again, or take it away"
    )
