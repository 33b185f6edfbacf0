"""Where the members of a zip archive lie, and what is wrong with one that cannot be read."""

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.config.errors import DataError
from penstock.store.damage import DamagedFile

_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""In front of each member: a magic word, and at its end the lengths of a name and of extra fields."""
_IS_ENCRYPTED = 0x1


def check_readable(info: zipfile.ZipInfo, place: str) -> None:
    """Refuse a member that needs a password."""
    if info.flag_bits & _IS_ENCRYPTED:
        raise DataError(f"{place} is encrypted; write it without a password")


def member_offset(read_at: Callable[[int, int], bytes], info: zipfile.ZipInfo) -> int:
    """Where the bytes of a member begin; `read_at` takes a number of bytes and a place of the file."""
    magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(read_at(_LOCAL_HEADER.size, info.header_offset))
    if magic != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"no member where {info.filename!r} should be")
    return int(info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes)


@contextmanager
def reading_archive(path: str) -> Iterator[None]:
    """Say in one line what is wrong with an archive."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError) as error:
        raise DamagedFile(
            f"{path}: is not a whole .npz file (a zip archive): {error}", "was it cut short? write it again"
        ) from error
