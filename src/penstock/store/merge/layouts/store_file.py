"""A file of a store whose bytes have known places before a value is written: values, and what lies between them."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.store.checksums import joined_checksum
from penstock.store.schema import ArraySpec


@dataclass(frozen=True, slots=True)
class Place:
    """Where the values of one array of one split lie."""

    array: ArraySpec
    split: str
    num_rows: int
    file: str
    """Relative to the store."""
    member: str | None
    """Its name in a file that has several."""
    offset: int

    @property
    def num_bytes(self) -> int:
        """Of all values."""
        return self.num_rows * self.array.row_bytes

    @property
    def key(self) -> tuple[str, str]:
        """Split and array: what tells it from all others."""
        return self.split, self.array.name


Checksums = Mapping[tuple[str, str], int]
"""Of the values of each place, by its key."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bytes that are not values: headers, a directory."""

    offset: int
    content: bytes


class StoreFile(Protocol):
    """A file whose pieces have known places before a value is written."""

    @property
    def name(self) -> str:
        """Relative to the store."""
        ...

    @property
    def places(self) -> tuple[Place, ...]:
        """What is in it."""
        ...

    @property
    def num_bytes(self) -> int:
        """Of the whole file."""
        ...

    def pieces(self, checksums: Checksums) -> Iterator[Fixed | Place]:
        """The whole file in order; headers may need the checksums of the values."""
        ...


def file_checksum_of(file: StoreFile, checksums: Checksums) -> int:
    """Of a whole file, from those of its values."""
    crc = 0
    for piece in file.pieces(checksums):
        if isinstance(piece, Fixed):
            crc = zlib.crc32(piece.content, crc)
        else:
            crc = joined_checksum(crc, checksums[piece.key], piece.num_bytes)
    return crc


def total_bytes(files: Sequence[StoreFile]) -> int:
    """Of all files."""
    return sum(file.num_bytes for file in files)
