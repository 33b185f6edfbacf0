"""Pass 2 without a shuffle: the samples of some batch files go to their offsets in the files of a store."""

import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from penstock.prep.merge.batches import BatchReader, Rows
from penstock.prep.merge.layouts import Extents, Wrote
from penstock.prep.merge.plan import MergePlan
from penstock.runtime.checksums import joined_checksum


class StretchWriter:
    """Writes one stretch of each array of a store, from a first row on, front to back, and takes its checksum."""

    def __init__(self, folder: Path, extents: Extents, first_rows: Mapping[str, int]) -> None:
        self._folder, self._extents, self._first_rows = folder, extents, first_rows
        self._open: dict[str, int] = {}
        self.wrote: Wrote = {}

    def write(self, split: str, columns: Mapping[str, Rows]) -> None:
        """Add samples to a split."""
        for array, rows in columns.items():
            self.append(split, array, rows)

    def append(self, split: str, array: str, rows: Rows, checksum: int | None = None) -> None:
        """Write the next samples of an array; their checksum is taken where it is not known."""
        extent = self._extents[split, array]
        num_bytes, crc = self.wrote.get((split, array), (0, 0))
        content = rows.reshape(-1).data
        offset = extent.offset + self._first_rows[split] * extent.array.row_bytes + num_bytes
        if extent.file not in self._open:
            self._open[extent.file] = os.open(self._folder / extent.file, os.O_WRONLY)
        write_at(self._open[extent.file], content, offset)
        crc = zlib.crc32(content, crc) if checksum is None else joined_checksum(crc, checksum, len(content))
        self.wrote[split, array] = num_bytes + len(content), crc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)


def write_at(descriptor: int, content: memoryview, offset: int) -> None:
    """Write all bytes to an offset of a file."""
    while len(content):
        count = os.pwrite(descriptor, content, offset)
        content, offset = content[count:], offset + count


def copy_batches(plan: MergePlan, writer: StretchWriter, chosen: range) -> None:
    """Write all samples of some batches; holds a buffer, and one array where it must be decoded."""
    names = plan.splitter.names
    for batch in chosen:
        numbers = plan.splitter.numbers(batch)
        with BatchReader(plan.batches, batch) as reader:
            for column, array in plan.columns:
                for first, rows in reader.chunks(column):
                    if isinstance(numbers, int):
                        writer.append(names[numbers], array, rows, reader.last_checksum)
                        continue
                    for split, name in enumerate(names):
                        is_chosen = numbers[first : first + len(rows)] == split
                        writer.append(name, array, rows[np.flatnonzero(is_chosen)])


def accumulate_batches(plan: MergePlan, writer: StretchWriter) -> None:
    """The simple way for small data: array by array in memory, then written. The bytes are those of the other way."""
    every = range(len(plan.batches))
    splits = np.concatenate([plan.split_numbers(batch) for batch in every])
    chosen = {name: np.flatnonzero(splits == split) for split, name in enumerate(plan.splitter.names)}
    if plan.options.shuffle:
        keys = plan.order_keys.of_rows(0, plan.batches.total_samples)
        chosen = {name: rows[np.argsort(keys[rows])] for name, rows in chosen.items()}
    for column, array in plan.columns:
        parts = []
        for batch in every:
            with BatchReader(plan.batches, batch) as reader:
                parts.append(reader.rows(column, 0, reader.num_samples).copy())
        whole = np.concatenate(parts)
        for name, rows in chosen.items():
            writer.append(name, array, whole[rows])
