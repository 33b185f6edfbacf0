"""Ways to store the bytes of an array: as they are, or compressed."""

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from penstock.config.errors import ConfigError
from penstock.config.sizes import KIB
from penstock.store.npy_header import MOST_HEADER_BYTES

COMPRESSIONS = ("none", "zlib", "zstd", "lz4")
_LEVELS = {"zlib": (0, 9), "zstd": (1, 22), "lz4": (1, 12)}
_DEFAULT_ZLIB_LEVEL = 6
_MEMBER_WINDOW = -zlib.MAX_WBITS
"""Archives leave out the frame around what zlib packs."""

_PIECE_BYTES = 256 * KIB

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
    if level not in range(least, most + 1):
        raise ConfigError(f"compression level is {level!r}; {compression} has {least} to {most}")


def compressor(compression: str, level: int | None) -> Callable[[Buffer], Buffer]:
    """A function from bytes to fewer bytes."""
    if compression == "zlib":
        zlib_level = _DEFAULT_ZLIB_LEVEL if level is None else level
        return lambda values: zlib.compress(values, zlib_level)
    compress: Callable[[Buffer], Buffer] = _codec(compression, level).compress
    return compress


def decompressed(compression: str, stored: Buffer, array_bytes: int) -> Buffer:
    """The inverse; ValueError when these are no such bytes."""
    if compression == "zlib":
        return _inflated(stored, array_bytes)
    try:
        return _codec(compression, None).decompress(stored, decompressed_size=array_bytes)
    except OSError as error:
        raise ValueError(str(error)) from error


def _codec(compression: str, level: int | None) -> Any:
    """Arrow takes 40 MB of memory: only those who ask for its codecs pay for them."""
    import pyarrow as pa

    name: Any = compression
    return pa.Codec(name, compression_level=level)


def inflated_member(stored: Buffer, array_bytes: int) -> Buffer:
    """The values in a deflated member of an archive, which has a short header in front of them."""
    return _inflated(stored, array_bytes, _MEMBER_WINDOW, most_before=MOST_HEADER_BYTES)


def _inflated(
    stored: Buffer, array_bytes: int, window: int = zlib.MAX_WBITS, most_before: int = 0
) -> memoryview:
    """The last bytes of what unpacks, all of it but for a header of at most so many bytes; they are held once."""
    wrong_size = ValueError(f"it does not unpack to {array_bytes} bytes")
    values = memoryview(bytearray(array_bytes + most_before))
    num_bytes = 0
    for piece in _inflated_pieces(stored, window):
        end = num_bytes + len(piece)
        if end > len(values):
            raise wrong_size
        values[num_bytes:end] = piece
        num_bytes = end
    if num_bytes < array_bytes:
        raise wrong_size
    return values[num_bytes - array_bytes : num_bytes]


def _inflated_pieces(stored: Buffer, window: int) -> Iterator[bytes]:
    """What unpacks, a little at a time, however much it is; ValueError when it has no end."""
    unpacker = zlib.decompressobj(window)
    try:
        for start in range(0, len(stored), _PIECE_BYTES):
            packed = stored[start : start + _PIECE_BYTES]
            while packed:
                yield unpacker.decompress(packed, _PIECE_BYTES)
                packed = unpacker.unconsumed_tail
        yield unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError("it is cut short")
