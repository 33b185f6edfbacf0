"""The native layout: a header, then the bytes of one array after the other, each at a multiple of 64."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.batch_file.compression import compressor, decompressed
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


def read_native_array(path: Path, array: StoredArray) -> Values:
    """The values of one array, checked."""
    values = np.fromfile(path, dtype=np.uint8, count=array.num_bytes, offset=array.offset)
    if array.compression != "none":
        values = _unpacked(path, array, values)
    check_values(path, array, zlib.crc32(values.data))
    return values.view(array.dtype).reshape(array.shape)


def _unpacked(path: Path, array: StoredArray, stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
    try:
        values = decompressed(array.compression, stored.data, array.array_bytes)
    except ValueError as error:
        raise DataError(
            f"{path}: array '{array.name}' is damaged: {str(error).rstrip('.')}; write the file again"
        ) from error
    return np.frombuffer(values, dtype=np.uint8)


def map_array(path: Path, array: StoredArray) -> Values:
    """The values of one array that is stored as it is, read when they are asked for and not checked."""
    if array.array_bytes == 0:
        return np.empty(array.shape, array.dtype)
    return np.memmap(path, dtype=array.dtype, mode="r", offset=array.offset, shape=array.shape)


def check_values(path: Path, array: StoredArray, checksum: int) -> None:
    """Refuse values that are not those that were written."""
    if array.checksum is not None and array.checksum != checksum:
        raise DataError(
            f"{path}: array '{array.name}' is damaged: its checksum is {checksum:08x}, "
            f"not {array.checksum:08x}; write the file again"
        )
