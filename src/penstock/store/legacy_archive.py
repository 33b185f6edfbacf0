"""Old `.npz` files: arrays of pickled samples, or of parts of them, and arrays of numbers beside them."""

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.store.npy_header import NpyHeader, read_npy_header
from penstock.store.plain_pickle.reading import read_plain_pickle
from penstock.store.plain_pickle.values import shown
from penstock.store.zip_members import reading_archive

_SUFFIX = ".npy"
_LEAST_BYTES, _MOST_BYTES_PER_BYTE = 64 * MIB, 100
"""What a member may come to, small or large: zeros can be a thousand times as long as what they are packed to."""
_CHUNK_BYTES = MIB


def read_archive(path: Path, stream: IO[bytes]) -> dict[str, Any]:
    """What the members of an archive hold; numbers are read when it is known that they are of as many samples."""
    with reading_archive(str(path)), zipfile.ZipFile(stream) as archive:
        infos = {info.filename.removesuffix(_SUFFIX): info for info in archive.infolist()}
        found: dict[str, Any] = {name: _opened(path, archive, info) for name, info in infos.items()}
        for name, header in found.items():
            if header.dtype.hasobject:
                found[name] = _read(path, archive, infos[name])
        if len(found) > 1:
            check_lengths(path, found)
        for name, value in found.items():
            if isinstance(value, NpyHeader):
                found[name] = _read(path, archive, infos[name])
    return found


def check_lengths(path: Path, parts: Mapping[Any, Any]) -> None:
    """Refuse parts of samples that are not of the same number of samples."""
    lengths = {name: _length(path, name, part) for name, part in parts.items()}
    if len(set(lengths.values())) != 1:
        raise DataError(f"{path}: its parts have different numbers of samples: {shown(lengths)}")


def _length(path: Path, name: Any, part: Any) -> int:
    shape = (len(part),) if isinstance(part, list | tuple) else getattr(part, "shape", ())
    if not shape:
        raise DataError(
            f"{path}: '{shown(name)}' has no values, one for each sample; give a list or an array"
        )
    return int(shape[0])


def _opened(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NpyHeader:
    """The header of a member that is not too large."""
    place = _place(path, info)
    if info.file_size > _LEAST_BYTES + info.compress_size * _MOST_BYTES_PER_BYTE:
        raise DataError(
            f"{place} would unpack {info.compress_size} bytes to {info.file_size}; if it is not damaged, "
            "write it with np.savez, which does not compress"
        )
    with archive.open(info) as member:
        return read_npy_header(member, place)


def _read(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    place = _place(path, info)
    with archive.open(info) as member:
        header = read_npy_header(member, place)
        return read_plain_pickle(member, place) if header.dtype.hasobject else _numbers(member, header)


def _numbers(member: IO[bytes], header: NpyHeader) -> NDArray[Any]:
    content = np.empty(math.prod(header.shape) * header.dtype.itemsize, np.uint8)
    rest = content.data
    while rest:
        chunk = member.read(min(len(rest), _CHUNK_BYTES))
        if not chunk:
            raise EOFError("it ends before its last value")
        rest[: len(chunk)] = chunk
        rest = rest[len(chunk) :]
    return np.ndarray(header.shape, header.dtype, content, order="F" if header.is_column_major else "C")


def _place(path: Path, info: zipfile.ZipInfo) -> str:
    return f"{path}: array '{shown(info.filename.removesuffix(_SUFFIX))}'"
