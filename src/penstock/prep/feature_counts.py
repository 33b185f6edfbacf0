"""One pass over a data set: the values of features that have ids, the numbers of those that have none."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.features.graph import FeatureGraph
from penstock.features.strings import as_strings, to_arrow
from penstock.features.values import BadValue, Strings, Values
from penstock.prep.statistics import NumberStatistics
from penstock.prep.vocabularies import ValueCounter
from penstock.readers.scan import ScannedFiles
from penstock.runtime.budget import Share

_BATCH_ROWS, _BATCH_BYTES = 1 << 17, 16 * MIB
_WEIGHT = r":[^:]*$"
"""Of "key:weight", what the key ends before."""


@dataclass(eq=False)
class FeatureCounts:
    """What the rows said of the features. Features of one table are counted together."""

    folder: Path
    """For temporary files."""
    tables: Mapping[str, str]
    """Feature of ids -> the table that its values count for."""
    weighted: frozenset[str]
    """Those features whose values are "key:weight"."""
    numbers: dict[str, NumberStatistics]
    counters: dict[str, ValueCounter] = field(init=False)
    num_missing: dict[str, int] = field(init=False)
    """By table: rows, or steps of sequences, without a value."""

    def __post_init__(self) -> None:
        names = list(dict.fromkeys(self.tables.values()))
        self.counters = {name: ValueCounter(self.folder / str(at)) for at, name in enumerate(names)}
        self.num_missing = dict.fromkeys(names, 0)

    def add(self, name: str, values: Values) -> None:
        num_missing = int(np.count_nonzero(values.lengths == 0))
        if name in self.numbers:
            assert not isinstance(values.items, Strings)
            self.numbers[name].add(values.items, num_missing)
            return
        table = self.tables[name]
        self.num_missing[table] += num_missing
        if isinstance(values.items, np.ndarray) and values.items.dtype == np.int64:
            items: Any = pa.array(values.items)
        else:
            strings = as_strings(values).items
            assert isinstance(strings, Strings)
            items = to_arrow(strings)
            if name in self.weighted:
                items = pc.replace_substring_regex(items, pattern=_WEIGHT, replacement="")
        self.counters[table].add(items)

    def hold(self, max_bytes: int) -> None:
        """Keep what waits in memory below a number of bytes."""
        if self._waiting_bytes <= max_bytes:
            return
        for counter in self.counters.values():
            counter.compact()
        if self._waiting_bytes <= max_bytes // 2:
            return
        for counter in sorted(self.counters.values(), key=lambda each: -each.waiting_bytes):
            if self._waiting_bytes <= max_bytes // 4:
                return
            counter.spill()

    @property
    def _waiting_bytes(self) -> int:
        return sum(counter.waiting_bytes for counter in self.counters.values())

    def close(self) -> None:
        for counter in self.counters.values():
            counter.close()


def count_features(
    scanned: ScannedFiles,
    graph: FeatureGraph,
    counts: FeatureCounts,
    memory_bytes: int,
    on_rows: Callable[[int], None] = lambda num_rows: None,
) -> None:
    """Count all rows inside a number of bytes. A bad value is a DataError with file and row."""
    names = [*counts.tables, *counts.numbers]
    sizes = scanned.sizes
    share = Share("reader", max(sizes.min_bytes, min(sizes.ample_bytes, memory_bytes // 4)))
    waiting_bytes = max(MIB, memory_bytes // 16)
    for block, first_row, rows in _rows(scanned, share):
        try:
            for name, values in graph.values(rows, names):
                counts.add(name, values)
        except BadValue as error:
            file = scanned.files[int(scanned.blocks.file_index[block])].path
            start = int(scanned.blocks.first_row[block]) + first_row
            row = None if error.row is None else start + error.row
            raise DataError.at(
                error.problem, file=file, row=row, column=error.column, value=error.value
            ) from error
        counts.hold(waiting_bytes)
        on_rows(rows.num_rows)


def _rows(scanned: ScannedFiles, share: Share) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Pieces of blocks: the block, the first row in it, and the rows."""
    with closing(scanned.decoder(share)) as decoder:
        for block, num_rows in enumerate(scanned.blocks.num_rows.tolist()):
            first_row = 0
            for batch in decoder.batches(block, 0, num_rows):
                row_bytes = max(1, batch.nbytes // max(1, batch.num_rows))
                step = max(1, min(_BATCH_ROWS, _BATCH_BYTES // row_bytes))
                for start in range(0, batch.num_rows, step):
                    yield block, first_row + start, batch.slice(start, step)
                first_row += batch.num_rows
