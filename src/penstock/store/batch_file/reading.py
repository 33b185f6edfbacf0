"""The values of stored arrays: read, unpacked, checked; or mapped."""

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from penstock.store.batch_file.compression import decompressed, inflated_member
from penstock.store.batch_file.header import BatchHeader, StoredArray
from penstock.store.batch_file.values import Values
from penstock.store.damage import DamagedFile


def read_values(header: BatchHeader, array: StoredArray) -> Values:
    """The values of one array, checked."""
    values = np.fromfile(header.path, dtype=np.uint8, count=array.num_bytes, offset=array.offset)
    if array.compression != "none":
        values = _unpacked(header, array, values)
    check_values(header, array, crc32(values.data))
    return values.view(array.dtype).reshape(array.shape, order="F" if array.is_column_major else "C")


def check_values(header: BatchHeader, array: StoredArray, checksum: int) -> None:
    """Refuse an array whose values, as they were read, have another checksum than the header says."""
    if checksum != array.checksum:
        raise DamagedFile(
            f"{header.path}: array '{array.name}' is damaged: its checksum is {checksum:08x}, "
            f"not {array.checksum:08x}",
            "write the file again",
        )


def map_values(header: BatchHeader, array: StoredArray) -> Values:
    """The values of one array that is stored as it is, read when they are asked for and not checked."""
    if array.array_bytes == 0:
        return np.empty(array.shape, array.dtype)
    return np.memmap(header.path, dtype=array.dtype, mode="r", offset=array.offset, shape=array.shape)


def _unpacked(header: BatchHeader, array: StoredArray, stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
    try:
        if header.layout == "npz":
            values = inflated_member(stored.data, array.array_bytes)
        else:
            values = decompressed(array.compression, stored.data, array.array_bytes)
    except ValueError as error:
        raise DamagedFile(
            f"{header.path}: array '{array.name}' is damaged: {str(error).rstrip('.')}",
            "write the file again",
        ) from error
    return np.frombuffer(values, dtype=np.uint8)
