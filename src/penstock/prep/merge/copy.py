"""Pass 2 without a shuffle: the samples of some batch files go to their offsets, or to the part files of a task."""

import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from penstock.prep.merge.batches import BatchReader, Rows
from penstock.prep.merge.layouts import Extents, Key, Stretch
from penstock.prep.merge.plan import MergePlan
from penstock.runtime.checksums import joined_checksum

Wrote = dict[Key, Stretch]
"""What a task wrote: by split and array, or by split and file where the target is many files."""


class StretchWriter:
    """Writes one stretch of each array of a store, from a first row on, front to back, and takes its checksum."""

    def __init__(self, folder: Path, extents: Extents, first_rows: Mapping[str, int]) -> None:
        self._folder, self._extents, self._first_rows = folder, extents, first_rows
        self._open: dict[str, int] = {}
        self.wrote: Wrote = {}

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


def copy_batches(plan: MergePlan, folder: Path, extents: Extents, chosen: range) -> Wrote:
    """Write all samples of some batches; holds a buffer, and one array where it must be decoded."""
    names = plan.splitter.names
    first_rows = dict(zip(names, plan.starts[chosen.start].tolist(), strict=True))
    with StretchWriter(folder, extents, first_rows) as writer:
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
    return writer.wrote


def copy_to_parts(plan: MergePlan, folder: Path, number: int, chosen: range) -> Wrote:
    """Write all samples of some batches to Parquet or Arrow files, in their order."""
    from penstock.prep.merge.arrow_parts import PartFiles

    with PartFiles(folder, number, plan.schema, plan.options) as files:
        for batch in chosen:
            numbers = plan.split_numbers(batch)
            with BatchReader(plan.batches, batch, keep_decoded=True) as reader:
                for first in range(0, reader.num_samples, files.group_rows):
                    count = min(files.group_rows, reader.num_samples - first)
                    # Copies, since the reader has one buffer.
                    columns = {
                        array: reader.rows(column, first, count).copy() for column, array in plan.columns
                    }
                    for split, name in enumerate(plan.splitter.names):
                        chosen_rows = np.flatnonzero(numbers[first : first + count] == split)
                        if len(chosen_rows) < count:
                            found = {array: rows[chosen_rows] for array, rows in columns.items()}
                            files.write(name, found, len(chosen_rows))
                        else:
                            files.write(name, columns, count)
    return files.wrote


def accumulate_batches(plan: MergePlan, folder: Path, extents: Extents) -> Wrote:
    """The simple way for small data: array by array in memory, then written. The bytes are those of the other way."""
    names, every = plan.splitter.names, range(len(plan.batches))
    splits = np.concatenate([plan.split_numbers(batch) for batch in every])
    chosen = {name: np.flatnonzero(splits == split) for split, name in enumerate(names)}
    if plan.options.shuffle:
        keys = plan.order_keys.of_rows(0, plan.batches.total_samples)
        chosen = {name: rows[np.argsort(keys[rows])] for name, rows in chosen.items()}
    with StretchWriter(folder, extents, dict.fromkeys(names, 0)) as writer:
        for column, array in plan.columns:
            parts = []
            for batch in every:
                with BatchReader(plan.batches, batch) as reader:
                    parts.append(reader.rows(column, 0, reader.num_samples).copy())
            whole = np.concatenate(parts)
            for name, rows in chosen.items():
                writer.append(name, array, whole[rows])
    return writer.wrote
