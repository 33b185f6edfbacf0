"""Pass 2: the samples of some batch files, written to where they belong."""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.store.batch_file import read_array, read_header
from penstock.store.batch_file.values import Values, chunks
from penstock.store.checksums import joined_checksum
from penstock.store.merge.layout import Place
from penstock.store.merge.plan import MergePlan

BUFFER_BYTES = MIB
"""Copied at a time: small enough to be in the processor's cache when its checksum is taken."""

PartChecksums = dict[tuple[str, str], tuple[int, int]]
"""By split and array: the checksum of what a part wrote there, and its bytes."""


class PartCopier:
    """Writes the batches of a part one after the other; holds one buffer, and one array where it must be decoded."""

    def __init__(self, plan: MergePlan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._targets: dict[str, int] = {}

    def copy(self, part: range) -> PartChecksums:
        """Write all samples of some batches."""
        checksums: PartChecksums = {}
        try:
            for batch in part:
                self._copy_batch(batch, checksums)
        finally:
            self._close()
        return checksums

    def _copy_batch(self, batch: int, checksums: PartChecksums) -> None:
        batches = self._plan.batches
        batches.check_unchanged(batch)
        numbers = self._plan.splitter.numbers(batch)
        with _opened(batches.paths[batch]) as source:
            for column, spec in enumerate(batches.schema.arrays):
                if spec.name not in self._plan.schema:
                    continue
                if isinstance(numbers, int) and batches.is_copyable[batch, column]:
                    self._copy_bytes(source, batch, column, numbers, checksums)
                else:
                    self._copy_rows(batch, column, numbers, checksums)

    def _copy_bytes(self, source: int, batch: int, column: int, split: int, checksums: PartChecksums) -> None:
        batches = self._plan.batches
        spec = batches.schema.arrays[column]
        place, position = self._target(batch, split, spec.name)
        offset, left = int(batches.offsets[batch, column]), int(batches.num_samples[batch]) * spec.row_bytes
        num_bytes, crc = left, 0
        target = self._open(place.file)
        while left:
            count = os.preadv(source, [self._buffer[:left]], offset)
            if not count:
                raise DataError(f"{batches.paths[batch]}: ends in array '{spec.name}'; write it again")
            crc = zlib.crc32(self._buffer[:count], crc)
            write_at(target, self._buffer[:count], position)
            offset, position, left = offset + count, position + count, left - count
        self._check(batch, column, crc)
        _add(checksums, place, crc, num_bytes)

    def _copy_rows(
        self, batch: int, column: int, numbers: "np.ndarray | int", checksums: PartChecksums
    ) -> None:
        batches = self._plan.batches
        spec = batches.schema.arrays[column]
        header = read_header(batches.paths[batch])
        values = read_array(header, header.array(spec.name))
        for split in range(len(self._plan.splitter.names)):
            rows = values if numbers == split else values[numbers == split]
            place, position = self._target(batch, split, spec.name)
            self._write_rows(place, position, rows, checksums)

    def _write_rows(self, place: Place, position: int, rows: Values, checksums: PartChecksums) -> None:
        crc = 0
        target = self._open(place.file)
        for chunk in chunks(rows):
            crc = zlib.crc32(chunk, crc)
            write_at(target, chunk, position)
            position += len(chunk)
        _add(checksums, place, crc, rows.nbytes)

    def _target(self, batch: int, split: int, array: str) -> tuple[Place, int]:
        place = self._plan.places[self._plan.splitter.names[split], array]
        return place, place.offset + int(self._plan.starts[batch, split]) * place.array.row_bytes

    def _open(self, name: str) -> int:
        if name not in self._targets:
            self._targets[name] = os.open(self._folder / name, os.O_WRONLY)
        return self._targets[name]

    def _close(self) -> None:
        for descriptor in self._targets.values():
            os.close(descriptor)
        self._targets.clear()

    def _check(self, batch: int, column: int, crc: int) -> None:
        batches = self._plan.batches
        expected = int(batches.checksums[batch, column])
        if expected not in (-1, crc):
            raise DataError(
                f"{batches.paths[batch]}: array '{batches.schema.arrays[column].name}' is damaged: its checksum is "
                f"{crc:08x}, not {expected:08x}; write the file again"
            )


def write_at(descriptor: int, content: memoryview, position: int) -> None:
    """Write all bytes to a place of a file."""
    while len(content):
        count = os.pwrite(descriptor, content, position)
        content, position = content[count:], position + count


def joined(earlier: tuple[int, int], later: tuple[int, int]) -> tuple[int, int]:
    """Checksum and bytes of two stretches behind each other."""
    return joined_checksum(earlier[0], later[0], later[1]), earlier[1] + later[1]


def _add(checksums: PartChecksums, place: Place, crc: int, num_bytes: int) -> None:
    checksums[place.key] = joined(checksums.get(place.key, (0, 0)), (crc, num_bytes))


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
