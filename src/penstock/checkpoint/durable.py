"""Bytes that survive a kill and a power cut: written, flushed to disk, then made visible by a rename."""

import os
import shutil
import zlib
from pathlib import Path
from typing import BinaryIO

from penstock.config.sizes import MIB

BLOCK_BYTES = 8 * MIB
"""How much of a file is in memory at a time, whatever its size."""


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on disk."""
    with path.open("wb") as stream:
        stream.write(content)
        flush_to_disk(stream)


def flush_to_disk(stream: BinaryIO) -> None:
    """Wait until everything written to `stream` is on disk."""
    stream.flush()
    os.fsync(stream.fileno())


def sync_directory(directory: Path) -> None:
    """Wait until the names in `directory` are on disk; without it a new or renamed file may vanish."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(path: Path) -> int:
    """CRC-32 of a file, read block by block."""
    crc = 0
    buffer = memoryview(bytearray(BLOCK_BYTES))
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            crc = zlib.crc32(buffer[:count], crc)
    return crc


def remove_at_once(directory: Path, hidden: Path) -> None:
    """Remove a directory so that a kill leaves it either complete or out of sight under its hidden name."""
    directory.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)
