"""Where a part of a merge writes to: files at their full size; and the checksums of what it wrote."""

import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.store.checksums import joined_checksum
from penstock.store.merge.layouts.store_file import Place
from penstock.store.merge.source.reading import Rows

PartChecksums = dict[tuple[str, str], tuple[int, int]]
"""By split and array: the checksum of what a part wrote there, and its bytes."""


class Targets:
    """Files of a folder, opened when they are first written to. Each place is written from front to back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, int] = {}
        self.checksums: PartChecksums = {}

    def write(self, place: Place, first_row: int, rows: Rows) -> None:
        """Write samples to a place from its sample `first_row` on."""
        content = rows.reshape(-1).data
        self.write_bytes(place.file, content, place.offset + first_row * place.array.row_bytes)
        crc, num_bytes = self.checksums.get(place.key, (0, 0))
        self.checksums[place.key] = zlib.crc32(content, crc), num_bytes + len(content)

    def add(self, place: Place, crc: int, num_bytes: int) -> None:
        """Tell the checksum of bytes that were written to a place."""
        self.checksums[place.key] = joined(self.checksums.get(place.key, (0, 0)), (crc, num_bytes))

    def write_bytes(self, name: str, content: memoryview, position: int) -> None:
        """Write bytes to a position of a file."""
        if name not in self._open:
            self._open[name] = os.open(self._folder / name, os.O_WRONLY)
        write_at(self._open[name], content, position)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)


def write_at(descriptor: int, content: memoryview, position: int) -> None:
    """Write all bytes to a position of a file."""
    while len(content):
        count = os.pwrite(descriptor, content, position)
        content, position = content[count:], position + count


def joined(earlier: tuple[int, int], later: tuple[int, int]) -> tuple[int, int]:
    """Checksum and bytes of two stretches behind each other."""
    return joined_checksum(earlier[0], later[0], later[1]), earlier[1] + later[1]
