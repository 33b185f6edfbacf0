"""Ways to store the bytes of an array: as they are, or compressed."""

import zlib
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa

from penstock.config.errors import ConfigError

COMPRESSIONS = ("none", "zlib", "zstd", "lz4")
_LEVELS = {"zlib": (0, 9), "zstd": (1, 22), "lz4": (1, 12)}
_DEFAULT_ZLIB_LEVEL = 6

Buffer = Any
"""Whatever has bytes: bytes, a memoryview, an Arrow buffer."""


def check_compression(compression: str, level: int | None) -> None:
    """Refuse a way that is not known, and a level that it does not have."""
    if compression not in COMPRESSIONS:
        raise ConfigError(f"compression is '{compression}'; known: {', '.join(COMPRESSIONS)}")
    if level is None:
        return
    if compression == "none":
        raise ConfigError(
            f"compression level {level} without compression changes nothing; "
            "leave it out or choose zlib, zstd or lz4"
        )
    least, most = _LEVELS[compression]
    if not least <= level <= most:
        raise ConfigError(f"compression level is {level}; {compression} has {least} to {most}")


def compressor(compression: str, level: int | None) -> Callable[[Buffer], Buffer]:
    """A function from bytes to fewer bytes."""
    if compression == "zlib":
        zlib_level = _DEFAULT_ZLIB_LEVEL if level is None else level
        return lambda values: zlib.compress(values, zlib_level)
    return pa.Codec(cast(Any, compression), compression_level=level).compress


def decompressed(compression: str, stored: Buffer, array_bytes: int) -> Buffer:
    """The inverse; ValueError when these are no such bytes."""
    if compression == "zlib":
        return _inflated(stored, array_bytes)
    try:
        return pa.Codec(cast(Any, compression)).decompress(stored, decompressed_size=array_bytes)
    except OSError as error:
        raise ValueError(str(error)) from error


def _inflated(stored: Buffer, array_bytes: int) -> bytearray:
    unpacker = zlib.decompressobj()
    try:
        values = bytearray(unpacker.decompress(stored, array_bytes + 1))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(values) != array_bytes or not unpacker.eof:
        raise ValueError(f"they do not unpack to {array_bytes} bytes")
    return values
