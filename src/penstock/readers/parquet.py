"""Parquet files inside the reader's share. Blocks are row groups.

A row group is decoded whole where two of them fit the share: one that is still in use as views, and the next one. A
larger one is decoded some rows at a time. What numbers take in memory follows from the footer. Strings may be
thousands of times larger in memory than in the file, where one stands once in a dictionary: how large they are is
known from a sample, which keeps them in their dictionaries, and every batch is held against what was expected.
Never through the dataset scanner, which reads ahead without a bound.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.columns import join_schemas, project, with_types
from penstock.readers.files import DataFile
from penstock.readers.order import Blocks
from penstock.readers.parquet_footers import (
    STREAM_BYTES,
    Footer,
    Leaf,
    RowGroup,
    leaves_of,
    one_line,
    page_size,
    read_footer,
    row_groups,
)
from penstock.readers.scan import (
    BlockDecoder,
    Fingerprint,
    ReadRequest,
    ReadSizes,
    RollingLease,
    ScannedFiles,
)
from penstock.readers.sections import ReadingSection
from penstock.readers.storage import RemoteStream, open_input
from penstock.readers.stream import ROW_ID_BYTES
from penstock.runtime.budget import Share
from penstock.runtime.workers import map_in_threads
from penstock.runtime.world import max_decode_threads

_MAX_WHOLE_BYTES = 64 * MIB
"""Larger row groups are decoded no faster whole than in parts (measured), and hold more."""
_MAX_PART_BYTES, _MAX_PART_ROWS, _PART_SHARE = 16 * MIB, 65_536, 16
"""Rows that are decoded together take this part of the share..."""
_PARTS = 3  # ...and so many times that exists at once: being made, being cut, handed out
_GROUP_BYTES = 16 * MIB  # pages of columns that are open at once where a row group is decoded whole
_SHRINK = 8  # rows that take more than expected are decoded again in batches so many times smaller
_MAX_FETCHED_BYTES, _MAX_SAMPLED_FETCH_BYTES = 64 * MIB, 32 * MIB
"""A row group of an object store is fetched at once, as stored, up to this size."""
_MAX_OPEN_FILES = 16
_SAMPLED_GROUPS, _SAMPLED_STORE_GROUPS = 8, 2
"""In a store each look is a request: fewer row groups, and those whole, as stored."""
_SAMPLED_ROWS, _SAMPLED_BYTES = 1024, 8 * MIB
"""Of a row group with fewer bytes as stored all rows are sampled, of a larger one so many."""
_SAMPLED_COLUMNS = 8  # decoded together: the pages of all columns would take more than the rows


class OpenParquet(pq.ParquetFile):
    """A Parquet file that closes what it is read from."""

    def __init__(self, file: DataFile, read_dictionary: Sequence[str] = ()) -> None:
        self.source = open_input(file.path)
        try:
            # Without `buffer_size` Arrow loads the column chunks of a row group whole, compressed, even with
            # `pre_buffer` off: 206 MB instead of 87 MB for one row group of a million rows and 40 columns.
            super().__init__(
                self.source,
                pre_buffer=False,
                buffer_size=STREAM_BYTES,
                page_checksum_verification=True,
                read_dictionary=list(read_dictionary),
            )
        except BaseException as error:
            self.source.close()
            if not isinstance(error, (pa.ArrowException, OSError)):
                raise
            raise DataError(
                f"{file.path}: is not a whole Parquet file: {one_line(error)}; write it again, or leave it out"
            ) from error

    def close(self, force: bool = True) -> None:
        super().close(force)

    @contextmanager
    def holding(self, ranges: Sequence[tuple[int, int]]) -> Iterator[None]:
        """Have column chunks in memory as stored: in an object store each read is a request."""
        assert isinstance(self.source, RemoteStream)
        self.source.remote.hold(ranges)
        try:
            yield
        finally:
            self.source.remote.hold([])


@contextmanager
def _reading(file: DataFile) -> Iterator[None]:
    """Turns what Arrow raises over a torn or damaged file into an error that names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{file.path}: cannot be read to its end, it is damaged: {one_line(error)}; write it again"
        ) from error


@dataclass(frozen=True, slots=True)
class Needs:
    num_rows: int
    decoded_bytes: int
    max_row_bytes: float  # over about a thousand consecutive rows; not the largest single row
    page_bytes: int  # pages and dictionaries of all columns at once
    group_bytes: int
    """The same for those columns that are decoded together where the row group is decoded whole."""
    held_bytes: int  # what is fetched of an object store at once
    whole_bytes: int  # all that decoding it whole takes

    def parts(self, limit_bytes: int) -> tuple[int, int, int]:
        """Rows at a time where the share is so large, their bytes, and what is needed in all."""
        max_bytes = min(limit_bytes // _PART_SHARE, _MAX_PART_BYTES)
        rows = max(1, min(int(max_bytes / self.max_row_bytes), _MAX_PART_ROWS, self.num_rows))
        part_bytes = int(rows * self.max_row_bytes)
        return rows, part_bytes, self.page_bytes + _PARTS * part_bytes


class Sample(NamedTuple):
    row_bytes: float
    string_bytes: dict[str, tuple[float, float]]
    """For each column with strings their characters in a row: the mean, and the most over about a thousand rows."""


@dataclass(kw_only=True, eq=False)
class ScannedParquet(ScannedFiles):
    groups: tuple[RowGroup, ...]

    @cached_property
    def sample(self) -> Sample:
        """Decode a few row groups. Strings stay in dictionaries: they may be larger in memory than in the file."""
        schema, groups = self.columns, self.groups
        is_remote = any(group.stored_ranges for group in groups)
        num_groups = min(len(groups), _SAMPLED_STORE_GROUPS if is_remote else _SAMPLED_GROUPS)
        all_rows, all_bytes = 0, 0.0
        strings: dict[str, tuple[float, float]] = {}
        for group in (groups[index] for index in np.linspace(0, len(groups) - 1, num_groups, dtype=int)):
            file = self.files[group.file_index]
            string_bytes = sum(chunk.uncompressed_bytes for chunk in group.strings)
            is_small = group.number_bytes + string_bytes <= _SAMPLED_BYTES
            num_rows = group.num_rows if is_small else min(group.num_rows, _SAMPLED_ROWS)
            is_fetched = group.stored_ranges and group.stored_bytes <= _MAX_SAMPLED_FETCH_BYTES
            with (
                OpenParquet(file, [chunk.path for chunk in group.strings]) as opened,
                _reading(file),
                opened.holding(group.stored_ranges) if is_fetched else nullcontext(),
            ):
                for start in range(0, len(schema), _SAMPLED_COLUMNS):
                    names = schema.names[start : start + _SAMPLED_COLUMNS]
                    batch = next(opened.iter_batches(num_rows, [group.index], names, use_threads=False))
                    for name in names:
                        array: Any = batch.column(name)
                        ends: Any
                        ends, dictionary_bytes = _string_ends(array)
                        if ends is None or pa.types.is_dictionary(schema.field(name).type):
                            ends = np.linspace(0, dictionary_bytes, batch.num_rows + 1)
                        # Indices into a dictionary take as much as the offsets of strings.
                        num_bytes = array.nbytes + int(ends[-1]) - dictionary_bytes
                        all_bytes += num_bytes * group.num_rows / batch.num_rows
                        window = min(_SAMPLED_ROWS, batch.num_rows)
                        found = ends[-1] / batch.num_rows, (ends[window:] - ends[:-window]).max() / window
                        known = strings.get(name, found)
                        strings[name] = max(known[0], found[0]), max(known[1], found[1])
            all_rows += group.num_rows
        return Sample(all_bytes / max(1, all_rows), strings)

    @property
    def row_bytes(self) -> int:
        return -int(-self.sample.row_bytes // 1) + ROW_ID_BYTES if self.groups else 1

    @cached_property
    def needs(self) -> tuple[Needs, ...]:
        string_bytes = self.sample.string_bytes if any(group.strings for group in self.groups) else {}
        return tuple(_needs(group, string_bytes) for group in self.groups)

    @cached_property
    def sizes(self) -> ReadSizes:
        needs = self.needs
        # The smallest share, to a KiB: row groups are decoded in parts, unless they fit whole sooner.
        low, high = 0, 1
        while not _split(needs, high * KIB)[0]:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _split(needs, middle * KIB)[0] else (middle, high)
        # With an ample one they are decoded whole, unless they are huge, and those of object stores fetched at once.
        whole = [need for need in needs if need.decoded_bytes <= _MAX_WHOLE_BYTES]
        huge = [need for need in needs if need.decoded_bytes > _MAX_WHOLE_BYTES]
        retained_bytes = max((need.decoded_bytes for need in whole), default=0)
        needed = [need.whole_bytes for need in whole]
        needed += [need.parts(_PART_SHARE * _MAX_PART_BYTES)[2] + need.held_bytes for need in huge]
        ample_bytes = -(-(retained_bytes + max(needed, default=0)) // MIB) * MIB
        block_bytes = max(1, retained_bytes, _MAX_PART_BYTES if huge else 0)
        return ReadSizes(high * KIB, max(MIB, high * KIB, ample_bytes), block_bytes)

    def decoder(self, share: Share) -> BlockDecoder:
        return ParquetDecoder(self, share)


def scan_parquet(_: ReadingSection, files: Sequence[DataFile], request: ReadRequest) -> ScannedFiles:
    """Read all footers. A file without rows has no types to disagree with: writers often know none for it."""
    schema: pa.Schema | None = None
    columns, first_path = request.columns, files[0].path
    groups: list[RowGroup] = []
    marks: list[Fingerprint] = []
    before: Footer | None = None
    leaves: list[Leaf] = []
    footers = map_in_threads(read_footer, files, max_decode_threads())
    for file_index, (file, footer) in enumerate(zip(files, footers, strict=True)):
        num_rows = footer.metadata.num_rows
        if num_rows or (schema is None and file_index == len(files) - 1):
            if not footer.has_schema_of(before):
                projected = project(footer.metadata.schema.to_arrow_schema(), columns, file.path)
                if schema is None:
                    schema, first_path, columns = projected, file.path, projected.names
                elif not schema.equals(projected):
                    schema = join_schemas(schema, first_path, projected, file.path)
                before, leaves = footer, leaves_of(footer.metadata.schema, schema.names)
            groups += row_groups(footer, file_index, leaves)
        marks.append((file.name, file.size_bytes, num_rows, footer.checksum))
    assert schema is not None  # that of the last file counts even without rows
    return ScannedParquet(
        files=tuple(files),
        fingerprints=tuple(marks),
        columns=schema,
        blocks=Blocks.of((group.file_index, group.first_row, group.num_rows) for group in groups),
        groups=tuple(groups),
    )


def _string_ends(array: Any) -> tuple[NDArray[np.int64] | None, int]:
    """Bytes of coded strings in the first 0, 1, 2, ... values (None: there are none), and of their dictionaries."""
    types = pa.types
    if types.is_map(array.type):
        found = [_string_ends(array.keys), _string_ends(array.items)]
        ends: Any = sum(ends for ends, _ in found if ends is not None)
        has_strings = any(ends is not None for ends, _ in found)
        return ends[np.asarray(array.offsets)] if has_strings else None, found[0][1] + found[1][1]
    is_fixed = types.is_fixed_size_list(array.type)
    if is_fixed or types.is_list(array.type) or types.is_large_list(array.type):
        ends, dictionary_bytes = _string_ends(array.values)
        starts = np.arange(len(array) + 1) * array.type.list_size if is_fixed else np.asarray(array.offsets)
        return None if ends is None else ends[starts], dictionary_bytes
    if not types.is_dictionary(array.type):
        return None, 0
    kind, dictionary_bytes = array.type.value_type, int(array.dictionary.nbytes)
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)):
        return None, dictionary_bytes
    lengths = pc.take(pc.binary_length(array.dictionary), array.indices)
    ends = np.zeros(len(array) + 1, np.int64)
    np.cumsum(np.asarray(pc.fill_null(lengths, 0)), out=ends[1:])
    return ends, dictionary_bytes


def _needs(group: RowGroup, string_bytes: dict[str, tuple[float, float]]) -> Needs:
    num_rows, decoded_bytes = group.num_rows, group.number_bytes
    page_bytes, max_page_bytes = group.page_bytes, group.max_page_bytes
    max_row_bytes = 1 + group.number_bytes / num_rows
    for chunk in group.strings:
        mean, peak = string_bytes.get(chunk.column, (0.0, 0.0))
        decoded_bytes += max(chunk.uncompressed_bytes, int(mean * num_rows))
        max_row_bytes += max(peak, chunk.uncompressed_bytes / num_rows)
        # A writer looks at the size of a page when it has added a thousand values.
        usual_bytes = int(1024 * peak * num_rows / max(1, chunk.num_values))
        chunk_bytes = page_size(chunk.uncompressed_bytes, chunk.has_dictionary, usual_bytes)
        page_bytes += chunk_bytes
        max_page_bytes = max(max_page_bytes, chunk_bytes)
    group_bytes = max(max_page_bytes, min(page_bytes, _GROUP_BYTES))
    is_fetched = group.stored_ranges and group.stored_bytes <= _MAX_FETCHED_BYTES
    held_bytes = group.stored_bytes if is_fetched else 0
    whole_bytes = decoded_bytes + group_bytes + held_bytes
    return Needs(num_rows, decoded_bytes, max_row_bytes, page_bytes, group_bytes, held_bytes, whole_bytes)


def _split(needs: Sequence[Needs], limit_bytes: int) -> tuple[bool, int, int]:
    """Whether the share is enough, up to which size row groups are decoded whole, and what any one in work may need.

    As many row groups whole as any two neighbours fit the share, whatever their order; -1: none.
    """
    by_size = sorted(set(needs), key=lambda need: need.decoded_bytes)
    parts_bytes = [need.parts(limit_bytes)[2] for need in by_size]
    # What those from each one on need in parts, and what those up to each one need whole.
    largest_parts = [*accumulate(reversed(parts_bytes), max, initial=0)][::-1]
    largest_whole = [*accumulate((need.whole_bytes for need in by_size), max, initial=0)]
    for num_whole in range(len(by_size), 0, -1):
        retained_bytes = by_size[num_whole - 1].decoded_bytes
        needed_bytes = max(largest_whole[num_whole], largest_parts[num_whole])
        if retained_bytes <= _MAX_WHOLE_BYTES and retained_bytes + needed_bytes <= limit_bytes:
            return True, retained_bytes, needed_bytes
    return largest_parts[0] <= limit_bytes, -1, largest_parts[0]


class ParquetDecoder(BlockDecoder):
    """What a row group needs and what the one before it retains fit the share together, in any order."""

    def __init__(self, scanned: ScannedParquet, share: Share) -> None:
        self._scanned = scanned
        self._share = share
        self._names = scanned.columns.names
        limit_bytes = share.limit_bytes
        does_fit, self._max_whole_bytes, needed_bytes = _split(scanned.needs, limit_bytes)
        if not does_fit:
            sizes = [need.parts(limit_bytes)[2] for need in scanned.needs]
            raise self._too_large(scanned.groups[sizes.index(max(sizes))], max(sizes))
        spare_bytes = limit_bytes - needed_bytes - self._max_whole_bytes
        # Without whole row groups nothing is retained.
        self._lease = RollingLease(
            share, limit_bytes if self._max_whole_bytes < 0 else needed_bytes + spare_bytes // 2
        )
        self._opened: dict[int, OpenParquet] = {}

    def close(self) -> None:
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        group, need = self._scanned.groups[block], self._scanned.needs[block]
        file = self._scanned.files[group.file_index]
        # Some files stay open, since reading a footer again may cost as much as a row group.
        opened = self._opened.pop(group.file_index, None)
        if opened is None:
            if len(self._opened) == _MAX_OPEN_FILES:
                self._opened.pop(next(iter(self._opened))).close()
            opened = OpenParquet(file)
        self._opened[group.file_index] = opened
        is_there = group.index < opened.metadata.num_row_groups
        if not is_there or opened.metadata.row_group(group.index).num_rows != group.num_rows:
            raise DataError(f"{file.path}: has changed while it was being read")
        end = 0
        with _reading(file):
            is_whole = need.decoded_bytes <= self._max_whole_bytes
            # Where batches end follows from the row group alone, so that a run that continues cuts as before.
            for batch in self._whole(opened, group, need) if is_whole else self._parts(opened, group, need):
                start, end = end, end + batch.num_rows
                if end > first_row:
                    first = max(start, first_row)
                    rows = batch.slice(first - start, min(end, end_row) - first)
                    yield with_types(rows, self._scanned.columns)
                if end >= end_row:
                    return

    def _whole(self, opened: OpenParquet, group: RowGroup, need: Needs) -> Iterator[pa.RecordBatch]:
        names = self._names
        self._lease.move_on(need.whole_bytes, need.decoded_bytes)
        # Columns in groups whose pages fit together.
        num_groups = -(-need.page_bytes // max(1, need.group_bytes))
        size = -(-len(names) // num_groups)
        columns: dict[str, Any] = {}
        num_bytes = 0
        with opened.holding(group.stored_ranges) if need.held_bytes else nullcontext():
            for start in range(0, len(names), size):
                some = names[start : start + size]
                table = opened.read_row_group(group.index, columns=some, use_threads=self.use_threads)
                columns.update({name: table.column(name) for name in some})
                num_bytes += table.nbytes
                del table
                extra_bytes = num_bytes - need.decoded_bytes
                if extra_bytes > 0 and not self._lease.grow(extra_bytes, extra_bytes):
                    break
            else:
                yield from pa.table({name: columns[name] for name in names}).to_batches()
                return
        # Its strings are larger than the sample let expect.
        columns.clear()
        yield from self._parts(opened, group, need, is_moved=True)

    def _parts(
        self, opened: OpenParquet, group: RowGroup, need: Needs, is_moved: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Some rows at a time; where a batch takes more than is leased and cannot be leased, fewer."""
        rows, part_bytes, needed_bytes = need.parts(self._share.limit_bytes)
        is_fetched = 0 < need.held_bytes <= self._lease.max_needed_bytes - needed_bytes
        needed_bytes += need.held_bytes if is_fetched else 0
        if needed_bytes > self._lease.max_needed_bytes:
            raise self._too_large(group, needed_bytes)
        (self._lease.change if is_moved else self._lease.move_on)(needed_bytes, 0)
        done = leased_bytes = 0
        with opened.holding(group.stored_ranges) if is_fetched else nullcontext():
            while done < group.num_rows:
                skipped = done
                for batch in opened.iter_batches(rows, [group.index], self._names, use_threads=False):
                    if skipped >= batch.num_rows:
                        skipped -= batch.num_rows
                        continue
                    extra_bytes = _PARTS * (batch.nbytes - part_bytes) - leased_bytes
                    if extra_bytes > 0:
                        if not self._lease.grow(extra_bytes):
                            if batch.num_rows == 1:
                                path, size = self._scanned.files[group.file_index].path, batch.nbytes
                                raise BudgetExceeded(
                                    f"{path}: row {group.first_row + done} takes {format_size(size)} in memory, and "
                                    f"{_PARTS} times that while it is handed on, but {self._share.name} may hold "
                                    f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, or "
                                    "shorten the row"
                                )
                            rows = max(1, min(rows, batch.num_rows) // _SHRINK)
                            break
                        leased_bytes += extra_bytes
                    done += batch.num_rows - skipped
                    yield batch.slice(skipped).select(self._names)
                    skipped = 0

    def _too_large(self, group: RowGroup, needed_bytes: int) -> BudgetExceeded:
        return BudgetExceeded(
            f"{self._scanned.files[group.file_index].path}: row group {group.index} needs {format_size(needed_bytes)} "
            f"even when it is decoded in parts, but {self._share.name} may hold "
            f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, read fewer columns, or write "
            "smaller row groups (penstock rewrite)"
        )
