"""Headers of `.npy` arrays, and where the members of an `.npz` archive lie, without reading a value."""

import functools
import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.store_manifest import DamagedFile

MAX_HEADER_BYTES = 16 * KIB
"""More than NumPy allows a header to have."""
_LENGTHS = {(1, 0): struct.Struct("<H"), (2, 0): struct.Struct("<I")}
_READ_HEADER = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""In front of each member: a magic word, and at the end the lengths of a name and of extra fields."""
_IS_ENCRYPTED = 0x1


class NpyHeader(NamedTuple):
    """What stands in front of the values."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_column_major: bool
    """NumPy's Fortran order, where that makes a difference: the values of a row lie apart."""


def read_npy_header(stream: IO[bytes], label: str) -> NpyHeader:
    """The header that a stream begins with; the values come next. Messages begin with `label`."""
    try:
        version = npy_format.read_magic(stream)
        if version not in _READ_HEADER:
            raise DataError(
                f"{label}: is a NumPy array of named fields; write each field as an array of its own"
            )
        length = _LENGTHS[version].unpack(stream.read(_LENGTHS[version].size))[0]
        return _parsed(version, length, stream.read(length))
    # All that NumPy raises for a header that is no Python dict any more.
    except (ValueError, struct.error, TypeError, SyntaxError, tokenize.TokenError, RecursionError) as error:
        reason = (str(error).splitlines() or ["no reason is known"])[0]
        raise DataError(f"{label}: is not a NumPy array, or is cut short: {reason}") from error


@functools.lru_cache(maxsize=256)
def _parsed(version: tuple[int, int], num_bytes: int, text: bytes) -> NpyHeader:
    # Many files have the same headers, and NumPy takes long to parse them.
    stream = io.BytesIO(_LENGTHS[version].pack(num_bytes) + text)
    shape, is_column_major, dtype = _READ_HEADER[version](stream)
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return NpyHeader(dtype, shape, is_column_major and len(shape) > 1)


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of an array whose values follow in C order."""
    stream = io.BytesIO()
    fields = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(stream, fields)
    return stream.getvalue()


def check_readable(info: zipfile.ZipInfo, label: str) -> None:
    """Refuse a member that needs a password."""
    if info.flag_bits & _IS_ENCRYPTED:
        raise DataError(f"{label} is encrypted; write it without a password")


def member_offset(read_at: Callable[[int, int], bytes], info: zipfile.ZipInfo) -> int:
    """The offset of the first byte of a member; `read_at` takes a number of bytes and an offset."""
    magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(read_at(_LOCAL_HEADER.size, info.header_offset))
    if magic != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"no member where {info.filename!r} should be")
    return int(info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes)


@contextmanager
def reading_archive(path: str) -> Iterator[None]:
    """Turn what zipfile raises into one line."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError) as error:
        raise DamagedFile(
            f"{path}: is not a whole .npz file (a zip archive): {error}", "was it cut short? write it again"
        ) from error
