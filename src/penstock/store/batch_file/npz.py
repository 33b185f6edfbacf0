"""The `.npz` layout: what `np.savez` and `np.savez_compressed` write and `np.load` reads.

A member that is stored as it is lies at a fixed place of the file, so that its bytes can be copied out of it like
those of a native file. The archive has the checksum of header and values together; that of the values follows.
"""

import io
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.store.batch_file.header import BatchHeader, StoredArray, check_lengths
from penstock.store.batch_file.values import Values, chunks
from penstock.store.checksums import checksum_of_rest
from penstock.store.damage import DamagedFile
from penstock.store.npy_header import MOST_HEADER_BYTES, npy_header_bytes, read_npy_header
from penstock.store.zip_members import check_readable, member_offset, reading_archive

_SUFFIX = ".npy"
_METHODS = {"none": zipfile.ZIP_STORED, "zlib": zipfile.ZIP_DEFLATED}
_USUAL_HEADER_BYTES = 256
_COMPRESSIONS = {method: compression for compression, method in _METHODS.items()}


def write_npz(stream: BinaryIO, arrays: Mapping[str, Values], compression: str, level: int | None) -> None:
    """Write arrays in order; the bytes depend on nothing but them."""
    with zipfile.ZipFile(stream, "w", _METHODS[compression], compresslevel=level) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}{_SUFFIX}", "w", force_zip64=True) as member:
                member.write(npy_header(array))
                for chunk in chunks(array):
                    member.write(chunk)


def npy_header(array: Values) -> bytes:
    """What stands in front of the values of an array that is written in C order."""
    header = {
        "descr": npy_format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    stream = io.BytesIO()
    npy_format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def read_npz_header(path: Path, stream: BinaryIO, file_bytes: int) -> BatchHeader:
    """The arrays of an open archive; values are not read."""
    with reading_archive(str(path)), zipfile.ZipFile(stream) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(_SUFFIX)]
        arrays = [_stored_array(path, stream, archive, info) for info in members]
    if not arrays:
        raise DataError(f"{path}: has no arrays in it; .npz files hold .npy members")
    if not any(array.dtype.hasobject for array in arrays):
        check_lengths(str(path), {array.name: array.shape for array in arrays})
    return BatchHeader(path, "npz", file_bytes, {array.name: array for array in arrays})


def _stored_array(
    path: Path, stream: BinaryIO, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> StoredArray:
    name = info.filename.removesuffix(_SUFFIX)
    place = f"{path}: array '{name}'"
    check_readable(info, place)
    if info.compress_type not in _COMPRESSIONS:
        raise DataError(f"{place} is compressed in a way that NumPy does not write; write it with np.savez")
    start = member_offset(lambda num_bytes, offset: _read_at(stream, num_bytes, offset), info)
    is_stored = info.compress_type == zipfile.ZIP_STORED
    if is_stored:
        begin = io.BytesIO(_read_beginning(stream, info.file_size, start))
    else:
        with reading_archive(place), archive.open(info) as member:
            begin = io.BytesIO(member.read(min(info.file_size, MOST_HEADER_BYTES)))
    header = read_npy_header(begin, place)
    header_bytes = begin.tell()
    array_bytes = math.prod(header.shape) * header.dtype.itemsize
    _check_size(place, header.dtype.hasobject, info.file_size - header_bytes, array_bytes)
    crc = checksum_of_rest(info.CRC, zlib.crc32(begin.getvalue()[:header_bytes]), array_bytes)
    return StoredArray(
        name=name,
        dtype=header.dtype,
        shape=header.shape,
        offset=start + header_bytes if is_stored else start,
        num_bytes=array_bytes if is_stored else info.compress_size,
        compression=_COMPRESSIONS[info.compress_type],
        checksum=None if header.dtype.hasobject else crc,
        is_column_major=header.is_column_major,
    )


def _check_size(place: str, has_objects: bool, found_bytes: int, array_bytes: int) -> None:
    if not has_objects and found_bytes != array_bytes:
        raise DamagedFile(
            f"{place} is cut short or damaged: its shape needs {array_bytes} bytes, but there are {found_bytes}"
        )


def _read_beginning(stream: BinaryIO, member_bytes: int, start: int) -> bytes:
    """The header of a member and what follows; few headers are longer than usual."""
    beginning = _read_at(stream, min(member_bytes, _USUAL_HEADER_BYTES), start)
    if npy_header_bytes(beginning) <= len(beginning):
        return beginning
    return _read_at(stream, min(member_bytes, MOST_HEADER_BYTES), start)


def _read_at(stream: BinaryIO, num_bytes: int, offset: int) -> bytes:
    return os.pread(stream.fileno(), num_bytes, offset)
