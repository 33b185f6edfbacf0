"""Batch files in either layout, written, read, and looked at without reading them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from penstock.config.errors import ConfigError, DataError
from penstock.runtime.durable import replacing
from penstock.store.batch_file.compression import check_compression
from penstock.store.batch_file.header import BatchHeader, BatchRecord, StoredArray, check_lengths
from penstock.store.batch_file.native import write_native
from penstock.store.batch_file.native_header import MAGIC, read_native_header
from penstock.store.batch_file.npz import read_npz_header, write_npz
from penstock.store.batch_file.reading import map_values, read_values
from penstock.store.batch_file.values import Values, checked_array
from penstock.store.damage import DamagedFile
from penstock.store.legacy import holds_pickle, load_legacy, refuse_pickle
from penstock.store.schema import StoreSchema

SUFFIXES = {"native": ".batch", "npz": ".npz"}
"""Layouts, and how the names of their files end."""

_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")


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

    Gives what a manifest keeps of the file: its name, samples, bytes, and a checksum of names, types and values.
    DataError says which array cannot be written, or why the file cannot; nothing is left of it then.
    """
    path = Path(path)
    layout = layout or ("npz" if path.suffix == SUFFIXES["npz"] else "native")
    check_layout(layout, compression, level)
    found = _checked_arrays(str(path), arrays)
    try:
        with replacing(path) as stream:
            return _write(path, stream, found, layout, compression, level).record
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; nothing is left of it"
        ) from error


def _checked_arrays(file: str, arrays: Mapping[str, Any]) -> dict[str, Values]:
    if not isinstance(arrays, Mapping):
        raise DataError(f"{file}: arrays have type {type(arrays).__name__}; give a dict from names to arrays")
    if not arrays:
        raise DataError(f"{file}: there are no arrays to write")
    found = {name: checked_array(file, name, values) for name, values in arrays.items()}
    check_lengths(file, {name: array.shape for name, array in found.items()})
    return found


def _write(
    path: Path,
    stream: BinaryIO,
    arrays: Mapping[str, Values],
    layout: str,
    compression: str,
    level: int | None,
) -> BatchHeader:
    if layout == "native":
        return write_native(path, stream, arrays, compression, level)
    write_npz(stream, arrays, compression, level)
    num_bytes = stream.tell()
    stream.flush()
    stream.seek(0)
    return read_npz_header(path, stream, num_bytes)


def read_header(path: str | Path) -> BatchHeader:
    """What is in a batch file, from its header alone."""
    header = _header_unless_pickle(Path(path))
    if header is None:
        raise refuse_pickle(Path(path))
    return header


def _header_unless_pickle(path: Path) -> BatchHeader | None:
    try:
        with path.open("rb", buffering=0) as stream:
            return _read_header(path, stream)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _read_header(path: Path, stream: Any) -> BatchHeader | None:
    file_bytes = stream.seek(0, 2)
    stream.seek(0)
    magic = stream.read(len(MAGIC))
    stream.seek(0)
    if magic == MAGIC:
        return read_native_header(path, stream, file_bytes)
    if magic.startswith(_ZIP_MAGICS):
        return read_npz_header(path, stream, file_bytes)
    if holds_pickle(path, magic):
        return None
    raise DamagedFile(
        f"{path}: is no batch file, neither native nor .npz: {_beginning(magic)}",
        "write it again, or take it away",
    )


def load_batch(
    path: str | Path,
    *,
    allow_pickle: bool = False,
    mmap: bool = False,
    schema: StoreSchema | None = None,
) -> dict[str, Values]:
    """The arrays of a batch file by their names: native or `.npz`, ours or NumPy's; the content tells which.

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
            raise refuse_pickle(path)
        return load_legacy(path, schema)
    return {array.name: read_array(header, array, mmap=mmap) for array in header.arrays.values()}


def is_pickled(path: str | Path) -> bool:
    """Whether a file is one of old, with pickled samples in it; nothing of it is unpickled."""
    header = _header_unless_pickle(Path(path))
    return header is None or header.has_objects


def read_array(header: BatchHeader, array: StoredArray, *, mmap: bool = False) -> Values:
    """The values of one array of a batch file, checked; with `mmap` as in `load_batch`."""
    if array.dtype.hasobject:
        raise refuse_pickle(header.path)
    return map_values(header, array) if mmap and array.is_copyable else read_values(header, array)


def check_layout(layout: str, compression: str, level: int | None) -> None:
    """Refuse a layout that is not known, and a compression that it does not have."""
    if layout not in SUFFIXES:
        raise ConfigError(f"layout is '{layout}'; known: {', '.join(SUFFIXES)}")
    check_compression(compression, level)
    if layout == "npz" and compression not in ("none", "zlib"):
        raise ConfigError(
            f"layout npz cannot have compression {compression}: NumPy reads none and zlib; "
            "choose one of these, or layout native"
        )


def _beginning(magic: bytes) -> str:
    return f"it begins with {magic!r}" if magic else "it is empty"
