"""Writing the native layout: a header, then the bytes of one array after the other, each at a multiple of 64."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from penstock.store.batch_file.compression import compressor
from penstock.store.batch_file.header import BatchHeader, StoredArray
from penstock.store.batch_file.native_header import aligned, encoded_header, header_room
from penstock.store.batch_file.values import Values, chunks, values_checksum


def write_native(
    path: Path, stream: BinaryIO, arrays: Mapping[str, Values], compression: str, level: int | None
) -> BatchHeader:
    """Write arrays in order; compressing holds one of them at a time."""
    planned = [
        StoredArray(name, array.dtype, array.shape, 0, 0, compression, 0) for name, array in arrays.items()
    ]
    stored = []
    position = header_room(planned)
    for plan, array in zip(planned, arrays.values(), strict=True):
        stream.seek(position)
        written = replace(_write_array(stream, array, compression, level, plan), offset=position)
        stored.append(written)
        position = aligned(position + written.num_bytes)
    stream.truncate(position)
    stream.seek(0)
    stream.write(encoded_header(stored, position))
    return BatchHeader(path, "native", position, {array.name: array for array in stored})


def _write_array(
    stream: BinaryIO, array: Values, compression: str, level: int | None, plan: StoredArray
) -> StoredArray:
    if compression == "none" or array.size == 0:
        crc = 0
        for chunk in chunks(array):
            crc = zlib.crc32(chunk, crc)
            stream.write(chunk)
        return replace(plan, num_bytes=array.nbytes, checksum=crc, compression="none")
    values = np.ascontiguousarray(array)
    crc = values_checksum(values)
    compressed = compressor(compression, level)(values.reshape(-1).view(np.uint8).data)
    stream.write(compressed)
    return replace(plan, num_bytes=len(compressed), checksum=crc)
