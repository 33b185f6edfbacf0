"""Single samples out of Parquet or Arrow files."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock.store.schema import ArraySpec


class PartSamples:
    """The samples of a split in all its files; the group of rows that was looked at last is kept."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._groups = [(path, group) for path in paths for group in range(len(group_rows(path)))]
        counts = [count for path in paths for count in group_rows(path)]
        self._firsts = [0, *accumulate(counts)]
        self._loaded: tuple[int, pa.Table] | None = None

    def column(self, spec: ArraySpec) -> "PartColumn":
        """One array."""
        return PartColumn(self, spec)

    def row(self, position: int) -> tuple[pa.Table, int]:
        """A group with a sample in it, and which row it is."""
        group = bisect_right(self._firsts, position) - 1
        if self._loaded is None or self._loaded[0] != group:
            self._loaded = group, read_group(*self._groups[group])
        return self._loaded[1], position - self._firsts[group]


@dataclass(frozen=True)
class PartColumn:
    """One array of a split."""

    samples: PartSamples
    spec: ArraySpec

    def __getitem__(self, position: int) -> NDArray[Any]:
        table, row = self.samples.row(position)
        return np.asarray(table.column(self.spec.name)[row].as_py(), self.spec.dtype)


def group_rows(path: Path) -> list[int]:
    """Samples of each row group or record batch of a file."""
    if path.suffix == ".parquet":
        metadata = pq.read_metadata(path)
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        return [reader.get_batch(group).num_rows for group in range(reader.num_record_batches)]


def read_group(path: Path, group: int) -> pa.Table:
    """One of them, decoded."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            return file.read_row_group(group)
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        return pa.Table.from_batches([reader.get_batch(group)])
