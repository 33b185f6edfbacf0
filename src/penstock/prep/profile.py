"""How the values of a data set are distributed: nulls, distinct values, extremes, lengths, order; in bounded memory.

A few pieces from all over the data are looked at, or all rows. Everything is computed per block of rows; what is held
does not depend on how many rows there are.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.config.sizes import MIB
from penstock.readers.columns import is_list
from penstock.readers.files import DataFile
from penstock.readers.hashes import value_hashes
from penstock.readers.order import Blocks
from penstock.readers.parquet import OpenParquet
from penstock.readers.scan import ScannedFiles
from penstock.runtime.budget import Share

_SKETCH_HASHES = 4096
STANDARD_ERROR = 1 / math.sqrt(_SKETCH_HASHES - 2)
"""Of an estimated number of distinct values, as a part of it: 1.6 %."""
_FREQUENT_PART = 16
"""A value is counted in a block where it is at least one of so many values."""
_MAX_FREQUENT = 64
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_BATCH_ROWS, _BATCH_BYTES = 1 << 14, 2 * MIB
"""Of rows that are read together: hashes of their values, several words for each, exist at once."""
WHOLE_BYTES = 128 * MIB
"""Data that takes no more in memory is read completely."""
_NUM_PIECES, _PIECES_BYTES, _MAX_PIECE_ROWS = 32, 64 * MIB, 8192
"""Pieces, the bytes of all of them together, and the rows of one."""
_MAX_PASSED_BYTES = 1024 * MIB
"""Rows that are decoded on the way to pieces within blocks, in all."""
_FEW_BYTES = 16 * MIB
"""Of all rows of a short look together, and the most that is decoded on the way to them."""


@dataclass(slots=True)
class ColumnFacts:
    """What rows say about a column, block by block, in bounded memory. Of a list the items count, of a map the keys."""

    name: str
    type: Any
    num_rows: int = 0
    num_nulls: int = 0
    num_nan: int = 0
    num_empty: int = 0
    """Strings of no bytes."""
    min_value: Any = None
    max_value: Any = None
    mean: float | None = None
    """Of numbers, NaN left out."""
    mean_length: float | None = None
    """Of the items of lists and maps, of the bytes of strings; None for types without a length."""
    length_range: tuple[int, int] | None = None
    """Of the shortest and of the longest value."""
    distinct: int = 0
    distinct_is_exact: bool = True
    """False: `distinct` is an estimate."""
    top: tuple[Any, float] | None = None
    """The most frequent value and its part of all, where one stands out."""
    is_number_text: bool = False
    """Whether all strings, of which there is at least one, are numbers as a program would write them."""
    rises: int = 0
    """How neighbouring numbers or strings compare; within pieces, rows come in the order of the data."""
    falls: int = 0
    ties: int = 0
    _last: Any = None
    _num_items: int = 0
    _num_numbers: int = 0
    _sum: float = 0.0
    _sum_of_squares: float = 0.0
    _num_lengths: int = 0
    _total_length: int = 0
    _smallest: Any = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Hashes: of n distinct ones, spread evenly, the k-th smallest is at about k/n of their range."""
    _frequent: dict[Any, int] = field(default_factory=dict)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of numbers, NaN left out."""
        if self.mean is None:
            return None
        return math.sqrt(max(0.0, self._sum_of_squares / self._num_numbers - self.mean**2))

    @property
    def tie_rate(self) -> float:
        """Of neighbouring rows, the part that has the same value."""
        return self.ties / max(1, self.rises + self.falls + self.ties)

    @property
    def tie_chance(self) -> float:
        """What `tie_rate` would be in random order; values that are rare in every piece count as never the same."""
        return sum((count / self._num_items) ** 2 for count in self._frequent.values())

    def add(self, column: Any) -> None:
        """See the values of consecutive rows."""
        self.num_rows += len(column)
        self.num_nulls += column.null_count
        values = column.drop_null()
        if pt.is_dictionary(values.type):
            values = values.dictionary_decode()
        lengths = pc.binary_length(values) if is_text(values.type) else None
        if lengths is not None:
            self.num_empty += int(np.count_nonzero(lengths.to_numpy(zero_copy_only=False) == 0))
        is_nested = False
        while is_list(values.type) or pt.is_map(values.type):
            if pt.is_map(values.type):
                values = pa.ListArray.from_arrays(values.offsets, values.keys)
            if not is_nested:
                is_nested, lengths = True, pc.list_value_length(values)
            values = values.flatten()
        if lengths is not None and len(lengths):
            found: Any = pc.min_max(lengths).as_py()
            shortest, longest = self.length_range or (found["min"], found["max"])
            self.length_range = min(shortest, found["min"]), max(longest, found["max"])
            self._num_lengths += len(lengths)
            self._total_length += int(pc.sum(lengths).as_py())
            self.mean_length = self._total_length / self._num_lengths
        values = values.drop_null()
        if pt.is_dictionary(values.type):
            values = values.dictionary_decode()
        if len(values):
            self._add_items(values, is_nested)

    def _add_items(self, items: Any, is_nested: bool) -> None:
        kind = items.type
        if is_text(kind) and (self.is_number_text or not self._num_items):
            # One with a leading zero is a code that must stay as it is.
            is_code = pc.any(pc.match_substring_regex(items, r"^[+-]?0[0-9]")).as_py()
            self.is_number_text = not is_code and pc.all(pc.match_substring_regex(items, _NUMBER)).as_py()
        self._num_items += len(items)
        if is_number(kind):
            # Numbers that compare as the values do.
            whole = pa.int32() if pt.is_date32(kind) else pa.int64() if is_moment(kind) else pa.uint8()
            plain = items if pt.is_integer(kind) or pt.is_floating(kind) else items.cast(whole)
            numbers = plain.to_numpy(zero_copy_only=False)
            num_nan = int(np.count_nonzero(np.isnan(numbers))) if pt.is_floating(kind) else 0
            if not is_moment(kind):
                self.num_nan += num_nan
                self._num_numbers += len(numbers) - num_nan
                add = np.nansum if num_nan else np.sum
                self._sum += float(add(numbers, dtype=np.float64))
                self._sum_of_squares += float(add(np.square(numbers, dtype=np.float64)))
                self.mean = self._sum / self._num_numbers if self._num_numbers else None
            if not is_nested:
                before = numbers[:-1] if self._last is None else np.append(self._last, numbers[:-1])
                after = numbers[-len(before) :] if len(before) else before
                rises, falls = int(np.count_nonzero(after > before)), int(np.count_nonzero(after < before))
                self.rises, self.falls = self.rises + rises, self.falls + falls
                self.ties += len(after) - rises - falls
                self._last = numbers[-1:]
        elif is_text(kind) and not is_nested:
            whole_run = items if self._last is None else pa.concat_arrays([self._last, items])
            before, after = whole_run[:-1], whole_run[1:]
            rises, falls = (
                int(pc.sum(compare(after, before)).as_py() or 0) for compare in (pc.greater, pc.less)
            )
            self.rises, self.falls = self.rises + rises, self.falls + falls
            self.ties += len(after) - rises - falls
            self._last = items[-1:]
        if is_number(kind) or is_text(kind) or pt.is_decimal(kind) or pt.is_time(kind):
            found: Any = pc.min_max(items).as_py()
            if found["min"] is not None and found["min"] == found["min"]:  # all NaN have no extremes
                is_first = self.min_value is None
                self.min_value = found["min"] if is_first else min(self.min_value, found["min"])
                self.max_value = found["max"] if is_first else max(self.max_value, found["max"])
        hashes = value_hashes(items)
        if not self.distinct_is_exact:
            hashes = hashes[hashes < self._smallest[-1]]
        self._smallest = np.unique(np.concatenate([self._smallest, hashes]))[:_SKETCH_HASHES]
        self.distinct, self.distinct_is_exact = len(self._smallest), len(self._smallest) < _SKETCH_HASHES
        if not self.distinct_is_exact:
            estimate = round((_SKETCH_HASHES - 1) * 2.0**64 / float(self._smallest[-1]))
            self.distinct = min(self._num_items, estimate)
        try:
            counted = pc.value_counts(items)
        except pa.ArrowNotImplementedError:  # such as structs
            return
        counts = counted.field("counts").to_numpy()
        for index in np.flatnonzero(counts * _FREQUENT_PART >= len(items)).tolist():
            value = counted.field("values")[index].as_py()
            self._frequent[value] = self._frequent.get(value, 0) + int(counts[index])
        if len(self._frequent) > 2 * _MAX_FREQUENT:
            kept = sorted(self._frequent, key=lambda value: -self._frequent[value])[:_MAX_FREQUENT]
            self._frequent = {value: self._frequent[value] for value in kept}
        if self._frequent:
            value, count = max(self._frequent.items(), key=lambda entry: entry[1])
            self.top = value, count / self._num_items


def is_number(kind: Any) -> bool:
    """Whether values are one number each, moments included."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or is_moment(kind))


def is_moment(kind: Any) -> bool:
    return bool(pt.is_timestamp(kind) or pt.is_date(kind))


def is_text(kind: Any) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


@dataclass(frozen=True, slots=True)
class DataProfile:
    columns: tuple[ColumnFacts, ...]
    num_rows: int
    num_seen: int
    """Of these, looked at."""
    row_bytes: float
    num_intervals: int
    """How many intervals of rows were looked at."""
    first_rows: pa.RecordBatch | None
    is_whole: bool


@dataclass(frozen=True, slots=True)
class BlockPieces:
    """Rows of one block that are looked at: intervals in ascending order, counted from 0 in the block."""

    block: int
    intervals: tuple[tuple[int, int], ...]

    @property
    def num_rows(self) -> int:
        return sum(end - start for start, end in self.intervals)


def profile_pieces(
    scanned: ScannedFiles,
    share: Share,
    pieces: Sequence[BlockPieces],
    *,
    columns: Sequence[str] | None = None,
    on_rows: Callable[[int], None] = lambda num_rows: None,
    enough: Callable[[], bool] = lambda: False,
    on_batch: Callable[[pa.RecordBatch], None] = lambda batch: None,
) -> DataProfile:
    """Look at these pieces in the reader's share and a few MiB; `enough` may end it before the last.

    `on_batch` sees the same rows, a few at a time.
    """
    names = list(scanned.columns.names if columns is None else columns)
    facts = [ColumnFacts(name, scanned.columns.field(name).type) for name in names]
    num_seen, num_bytes = 0, 0
    first_rows: pa.RecordBatch | None = None
    for batch in _batches(scanned, share, pieces, names, enough):
        for facts_of_one, column in zip(facts, batch.columns, strict=True):
            facts_of_one.add(column)
        on_batch(batch)
        if first_rows is None:
            first_rows = batch.take(list(range(batch.num_rows)))
        num_seen += batch.num_rows
        num_bytes += batch.nbytes
        on_rows(batch.num_rows)
    return DataProfile(
        columns=tuple(facts),
        num_rows=scanned.num_rows,
        num_seen=num_seen,
        row_bytes=num_bytes / max(1, num_seen),
        num_intervals=sum(len(piece.intervals) for piece in pieces),
        first_rows=first_rows,
        is_whole=num_seen == scanned.num_rows,
    )


def _batches(
    scanned: ScannedFiles,
    share: Share,
    pieces: Sequence[BlockPieces],
    names: list[str],
    enough: Callable[[], bool],
) -> Iterator[pa.RecordBatch]:
    with closing(scanned.decoder(share)) as decoder:
        for piece in pieces:
            first_row, end_row = piece.intervals[0][0], piece.intervals[-1][1]
            for batch in decoder.batches(piece.block, first_row, end_row):
                for start, end in piece.intervals:
                    first, last = max(0, start - first_row), min(batch.num_rows, end - first_row)
                    rows = batch.select(names).slice(first, max(0, last - first))
                    row_bytes = max(1, rows.nbytes // max(1, rows.num_rows))
                    step = max(1, min(_BATCH_ROWS, _BATCH_BYTES // row_bytes))
                    yield from (rows.slice(at, step) for at in range(0, rows.num_rows, step))
                first_row += batch.num_rows
                if enough():
                    return


def choose_pieces(blocks: Blocks, row_bytes: int, *, full: bool = False) -> list[BlockPieces]:
    """All rows where they are few, or `full` is asked for; else pieces that begin at even distances."""
    if full or blocks.total_rows * row_bytes <= WHOLE_BYTES:
        return [BlockPieces(block, ((0, int(rows)),)) for block, rows in enumerate(blocks.num_rows.tolist())]
    piece_rows = max(1, min(_MAX_PIECE_ROWS, _PIECES_BYTES // row_bytes // _NUM_PIECES))
    return _pieces(blocks, piece_rows, _MAX_PASSED_BYTES // row_bytes)


def choose_few_pieces(blocks: Blocks, row_bytes: int, max_rows: int) -> list[BlockPieces]:
    """Pieces of `max_rows` together, in such an order that whoever stops early has seen rows from all over the data."""
    num_rows = max(1, min(max_rows, _FEW_BYTES // row_bytes))
    if blocks.total_rows <= num_rows and len(blocks.num_rows) <= _NUM_PIECES:
        return choose_pieces(blocks, row_bytes, full=True)
    pieces = _pieces(blocks, max(1, num_rows // _NUM_PIECES), _FEW_BYTES // row_bytes, num_rows)
    # By the bits of their numbers read backwards, each next one falls into the widest gap.
    num_bits = len(pieces).bit_length()
    return [pieces[index] for index in sorted(range(len(pieces)), key=lambda at: f"{at:0{num_bits}b}"[::-1])]


def _pieces(
    blocks: Blocks, piece_rows: int, max_passed_rows: int, num_rows: int | None = None
) -> list[BlockPieces]:
    """Intervals that begin at even distances, end in their blocks, and do not overlap; together `num_rows` if given.

    To begin in the middle of a block, the rows before must be decoded in some formats. Where that would be more than
    `max_passed_rows`, pieces begin at the starts of the blocks they fall into.
    """
    if not blocks.total_rows:
        return []
    ends = np.cumsum(blocks.num_rows)
    targets = np.linspace(0, max(0, blocks.total_rows - piece_rows), _NUM_PIECES).astype(np.int64)
    found = np.searchsorted(ends, targets, side="right")
    rows = targets - (ends - blocks.num_rows)[found]
    last_rows = {int(block): int(row) for block, row in zip(found, rows, strict=True)}
    if sum(last_rows.values()) > max_passed_rows:
        rows = np.zeros_like(rows)
    starts = sorted(set(zip(found.tolist(), rows.tolist(), strict=True)))
    if num_rows is not None:
        piece_rows = max(1, num_rows // len(starts))
    pieces = []
    for block, group in groupby(starts, key=lambda start: start[0]):
        firsts = [row for _, row in group]
        limits = [*firsts[1:], int(blocks.num_rows[block])]
        pairs = ((row, min(row + piece_rows, limit)) for row, limit in zip(firsts, limits, strict=True))
        pieces.append(BlockPieces(block, tuple((start, end) for start, end in pairs if start < end)))
    return pieces


def add_footers(profile: DataProfile, files: Sequence[DataFile]) -> None:
    """Nulls and extremes of all rows, as the footers of Parquet files tell them exactly."""
    chunks: dict[str, list[Any]] = {column.name: [] for column in profile.columns}
    for file in files:
        with OpenParquet(file) as opened:
            metadata = opened.metadata
            for group in map(metadata.row_group, range(metadata.num_row_groups)):
                for chunk in map(group.column, range(group.num_columns)):
                    if chunk.path_in_schema in chunks:  # nested columns have names of their own kind
                        chunks[chunk.path_in_schema].append(chunk.statistics)
    for column in profile.columns:
        statistics = chunks[column.name]
        if not statistics or any(found is None for found in statistics):
            continue
        if all(found.has_null_count for found in statistics):
            column.num_rows, column.num_nulls = (
                profile.num_rows,
                sum(found.null_count for found in statistics),
            )
        known = [found for found in statistics if found.has_min_max]
        is_all = all(found.has_min_max or not found.num_values for found in statistics)
        if is_number(column.type) and known and is_all:
            column.min_value = min(found.min for found in known)
            column.max_value = max(found.max for found in known)
