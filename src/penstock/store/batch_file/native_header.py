r"""The first bytes of a native batch file.

    0    8  magic: \x93 P N S T O C K
    8    4  version of the layout (little-endian, as all numbers here)
    12   4  bytes of the text that follows
    16   4  CRC-32 of that text
    20      text: JSON, then spaces up to the first array

`{"file_bytes": 2342720, "arrays": [{"name": ..., "dtype": "<f4", "shape": [500, 893], "offset": 2240,
"num_bytes": 1786000, "compression": "none", "crc32": 3421846044}, ...]}`

Room for the text is left before the arrays are written, and it is filled in when their checksums are known.
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from penstock.config.errors import DataError
from penstock.store.batch_file.compression import COMPRESSIONS
from penstock.store.batch_file.header import BatchHeader, StoredArray, check_lengths
from penstock.store.damage import DamagedFile

MAGIC = b"\x93PNSTOCK"
VERSION = 1
ALIGNMENT_BYTES = 64
"""Arrays begin at multiples of it: a cache line, and what vector instructions like."""

_PREFIX = struct.Struct("<8sIII")
_FIRST_READ_BYTES = 8192
"""Enough for the header of some 60 arrays, so that one read is all."""
_MOST_TEXT_BYTES = 1 << 28
_LARGEST_NUMBER = (1 << 63) - 1
_LARGEST_CHECKSUM = (1 << 32) - 1


def aligned(position: int) -> int:
    """The next place where an array may begin."""
    return -(-position // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def header_room(arrays: Sequence[StoredArray]) -> int:
    """Bytes in front of the first array, whatever offsets and checksums will be."""
    widest = [
        replace(array, offset=_LARGEST_NUMBER, num_bytes=_LARGEST_NUMBER, checksum=_LARGEST_CHECKSUM)
        for array in arrays
    ]
    return aligned(_PREFIX.size + len(_text(widest, _LARGEST_NUMBER)))


def encoded_header(arrays: Sequence[StoredArray], file_bytes: int) -> bytes:
    """All bytes in front of the first array."""
    text = _text(arrays, file_bytes).ljust(header_room(arrays) - _PREFIX.size)
    return _PREFIX.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text


def read_native_header(path: Path, stream: BinaryIO, file_bytes: int) -> BatchHeader:
    """The header of an open file; DataError if it is damaged, or says that the file should be longer."""
    start = stream.read(_FIRST_READ_BYTES)
    if len(start) < _PREFIX.size:
        raise DamagedFile(f"{path}: is cut short: it has {file_bytes} bytes and not even a header")
    _, version, text_bytes, crc = _PREFIX.unpack_from(start)
    if version != VERSION:
        raise DataError(
            f"{path}: has version {version} of the batch layout, but this Penstock reads {VERSION}; upgrade it"
        )
    text = start[_PREFIX.size : _PREFIX.size + text_bytes]
    if len(text) < text_bytes <= _MOST_TEXT_BYTES:
        text += stream.read(text_bytes - len(text))
    if len(text) != text_bytes or zlib.crc32(text) != crc:
        raise DamagedFile(f"{path}: its header is damaged or cut short")
    header = _decoded(path, json.loads(text), file_bytes)
    check_lengths(str(path), {name: array.shape for name, array in header.arrays.items()})
    return header


def _text(arrays: Sequence[StoredArray], file_bytes: int) -> bytes:
    items = [
        {
            "name": array.name,
            "dtype": array.dtype.str,
            "shape": array.shape,
            "offset": array.offset,
            "num_bytes": array.num_bytes,
            "compression": array.compression,
            "crc32": array.checksum,
        }
        for array in arrays
    ]
    return json.dumps({"file_bytes": file_bytes, "arrays": items}, separators=(",", ":")).encode()


def _decoded(path: Path, document: Mapping[str, Any], file_bytes: int) -> BatchHeader:
    if document["file_bytes"] != file_bytes:
        raise DamagedFile(
            f"{path}: has {file_bytes} bytes but was written with {document['file_bytes']}: "
            "it was cut short or something was appended"
        )
    arrays = {item["name"]: _decoded_array(path, item, file_bytes) for item in document["arrays"]}
    return BatchHeader(path, "native", file_bytes, arrays)


def _decoded_array(path: Path, item: Mapping[str, Any], file_bytes: int) -> StoredArray:
    array = StoredArray(
        name=item["name"],
        dtype=np.dtype(item["dtype"]),
        shape=tuple(item["shape"]),
        offset=item["offset"],
        num_bytes=item["num_bytes"],
        compression=item["compression"],
        checksum=item["crc32"],
    )
    is_inside = 0 <= array.offset <= array.offset + array.num_bytes <= file_bytes
    is_whole = array.compression != "none" or array.num_bytes == array.array_bytes
    is_whole &= all(length >= 0 for length in array.shape)
    if not is_inside or not is_whole or array.compression not in COMPRESSIONS or array.dtype.hasobject:
        raise DamagedFile(f"{path}: array '{array.name}': its header makes no sense", "write the file again")
    return array
