"""Values counted out of core: how often each occurs, the most frequent first.

Values of a batch are counted at once, and the counts of many batches are added up in memory. What is too much there
goes to a temporary file; at the end all of it is sorted by the hashes of the values (external_shuffle.py), so that
counts of one value stand together, and what is frequent enough is sorted again by count. The order of a vocabulary
depends on the values and their counts alone, not on the memory: equal counts stand in the order of their hashes.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.prep.external_shuffle import TEMPORARY_OPTIONS, ExternalShuffle, Keys, ShuffleSizes
from penstock.readers.hashes import value_hashes

_COLUMNS: list[tuple[str, pa.DataType]] = [("value", pa.large_string()), ("count", pa.int64())]
_SCHEMA = pa.schema(_COLUMNS)
_PIECE_ROWS = 1 << 16
_ROW_BYTES = 48
"""Of a value with its count and key, about."""


class ValueCounter:
    """Counts the values of one feature; `folder` is for its temporary files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[pa.Table] = []
        self.waiting_bytes = 0
        self._writer: Any = None
        self._spilled_bytes = 0

    def add(self, values: Any) -> None:
        """An Arrow array of strings or integers, without nulls."""
        if not len(values):
            return
        counted = pc.value_counts(values)
        # Integers count as they are written.
        strings = counted.field("values").cast(_SCHEMA.field("value").type)
        found = pa.Table.from_arrays([strings, counted.field("counts")], schema=_SCHEMA)
        self._waiting.append(found)
        self.waiting_bytes += found.nbytes

    def compact(self) -> None:
        """Add up the counts of equal values that wait in memory."""
        if len(self._waiting) > 1:
            self._waiting = [_summed(pa.concat_tables(self._waiting))]
            self.waiting_bytes = self._waiting[0].nbytes

    def spill(self) -> None:
        """Write what waits to the temporary file."""
        if self._writer is None:
            self._folder.mkdir(parents=True)
            self._writer = pa.ipc.new_stream(str(self._path), _SCHEMA, options=TEMPORARY_OPTIONS)
        for table in self._waiting:
            for batch in table.to_batches(max_chunksize=_PIECE_ROWS):
                self._writer.write_batch(batch)
        self._spilled_bytes += self.waiting_bytes
        self._waiting, self.waiting_bytes = [], 0
        pa.default_memory_pool().release_unused()

    def vocabulary(self, min_count: int, memory_bytes: int) -> "Vocabulary":
        """All values that were counted so often at least; the counter is empty afterwards."""
        self.compact()
        if self._writer is None:
            tables = self._waiting or [_SCHEMA.empty_table()]
            self._waiting, self.waiting_bytes = [], 0
            return _vocabulary_in_memory(tables[0], min_count)
        self.spill()
        self._writer.close()
        bucket_bytes = max(1, memory_bytes // 6)  # one is loaded, joined and sorted
        sizes = ShuffleSizes(bucket_bytes, memory_bytes // 4, _PIECE_ROWS)
        return self._vocabulary_on_disk(min_count, sizes)

    def _vocabulary_on_disk(self, min_count: int, sizes: ShuffleSizes) -> "Vocabulary":
        by_hash = ExternalShuffle(self._folder / "by_hash", _SCHEMA, sizes)
        buckets = by_hash.scatter(_keyed_by_hash(_read(self._path)), self._spilled_bytes)
        self._path.unlink()
        found = Vocabulary()
        frequent, max_count = self._folder / "frequent.arrows", 1
        with pa.ipc.new_stream(str(frequent), _SCHEMA, options=TEMPORARY_OPTIONS) as writer:
            for table in _summed_in_order(by_hash.gather(buckets)):
                kept = found.take(table, min_count)
                if kept.num_rows:
                    max_count = max(max_count, pc.max(kept["count"]).as_py())
                    for batch in kept.to_batches(max_chunksize=_PIECE_ROWS):
                        writer.write_batch(batch)
        by_hash.close()
        by_count = ExternalShuffle(self._folder / "by_count", _SCHEMA, sizes)
        expected_bytes = max(_ROW_BYTES, self._spilled_bytes // max(1, found.num_distinct)) * found.num_kept
        buckets = by_count.scatter(_keyed_by_count(_read(frequent), max_count), expected_bytes)
        frequent.unlink()
        found.batches = by_count.gather(buckets)
        return found

    @property
    def _path(self) -> Path:
        return self._folder / "counts.arrows"

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Vocabulary:
    """Values that are frequent enough, and what they are part of."""

    def __init__(self) -> None:
        self.num_values = 0
        """Of all rows, equal ones counted again."""
        self.num_distinct = 0
        self.num_kept = 0
        self.num_kept_values = 0
        """Of all rows, those in the vocabulary."""
        self.batches: Iterable[pa.RecordBatch] = ()
        """Values with their counts, the most frequent first; gone through once."""

    def take(self, counts: pa.Table, min_count: int) -> pa.Table:
        """Those that are frequent enough of values that were not seen here before."""
        kept = counts.filter(pc.field("count") >= min_count)
        self.num_values += int(pc.sum(counts["count"]).as_py() or 0)
        self.num_distinct += counts.num_rows
        self.num_kept += kept.num_rows
        self.num_kept_values += int(pc.sum(kept["count"]).as_py() or 0)
        return kept

    def write(self, path: Path) -> int:
        """A vocabulary file, one value a line; gives how many were left out because they hold a line break."""
        num_left_out = 0
        temporary = path.with_name(f".{path.name}.tmp")
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for batch in self.batches:
                for value in map(str, batch.column(0).to_pylist()):
                    if value.splitlines() != [value]:
                        num_left_out += 1
                    else:
                        file.write(f"{value}\n")
        temporary.replace(path)
        return num_left_out


def _vocabulary_in_memory(counts: pa.Table, min_count: int) -> Vocabulary:
    found = Vocabulary()
    kept = found.take(_summed(counts), min_count)
    [batch] = kept.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=_SCHEMA)]
    order = np.lexsort((value_hashes(batch.column(0)), -batch.column(1).to_numpy()))
    found.batches = [batch.take(order)]
    return found


def _summed(counts: pa.Table) -> pa.Table:
    summed = counts.group_by("value", use_threads=False).aggregate([("count", "sum")])
    return pa.Table.from_arrays([summed["value"], summed["count_sum"]], schema=_SCHEMA)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as stream:
        yield from stream


def _keyed_by_hash(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Keys]]:
    for batch in batches:
        yield batch, value_hashes(batch.column(0))


def _keyed_by_count(
    batches: Iterable[pa.RecordBatch], max_count: int
) -> Iterator[tuple[pa.RecordBatch, Keys]]:
    """The leading bits say how much rarer than the most frequent value one is, the others come from its hash."""
    count_bits = np.uint64(max_count.bit_length())
    for batch in batches:
        rarity = (max_count - batch.column(1).to_numpy()).astype(np.uint64)
        yield batch, (rarity << (np.uint64(64) - count_bits)) | (value_hashes(batch.column(0)) >> count_bits)


def _summed_in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Counts of equal values added up, of rows in the order of the hashes; tables in that order too."""
    rest = _SCHEMA.empty_table()
    for batch in batches:
        rows = pa.concat_tables([rest, pa.Table.from_batches([batch])]).combine_chunks()
        hashes = value_hashes(rows["value"].chunk(0))
        # The last hash may go on in the next batch.
        end = int(np.searchsorted(hashes, hashes[-1], side="left"))
        rest = rows.slice(end)
        if end:
            yield _in_hash_order(rows.slice(0, end))
    if rest.num_rows:
        yield _in_hash_order(rest)


def _in_hash_order(counts: pa.Table) -> pa.Table:
    summed = _summed(counts).combine_chunks()
    return summed.take(np.argsort(value_hashes(summed["value"].chunk(0)), kind="stable"))
