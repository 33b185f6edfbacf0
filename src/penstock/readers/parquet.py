"""Parquet files inside the reader's share. Blocks are row groups.

A row group is decoded whole where two of them fit the share: one that is still in use as views, and the next one. A
larger one is decoded some rows at a time. What numbers take in memory follows from the footer. Strings may be
thousands of times larger in memory than in the file, where one stands once in a dictionary: how large they are is
known from a sample, which keeps them in their dictionaries, and every batch is held against what was expected.
Never through the dataset scanner, which reads ahead without a bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.columns import join_schemas, project, with_types
from penstock.readers.files import DataFile, is_uri
from penstock.readers.order import Blocks
from penstock.readers.parquet_files import (
    OpenParquet,
    RowGroup,
    Sample,
    footer_checksum,
    page_size,
    read_row_groups,
    reading_file,
    take_sample,
)
from penstock.readers.reading import RollingLease
from penstock.readers.scan import BlockDecoder, Fingerprint, ReadRequest, ScannedFiles, fingerprint
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import ROW_ID_BYTES
from penstock.runtime.budget import Share

_MAX_WHOLE_BYTES = 64 * MIB
"""Larger row groups are decoded no faster whole than in parts (measured), and hold more."""
_MAX_PART_BYTES, _MAX_PART_ROWS, _PART_SHARE = 16 * MIB, 65_536, 16
"""Rows that are decoded together take this part of the share..."""
_PARTS = 3  # ...and so many times that exists at once: being made, being cut, handed out
_GROUP_BYTES = 16 * MIB  # pages of columns that are open at once where a row group is decoded whole
_SHRINK = 8  # rows that take more than expected are decoded again in batches so many times smaller
_MAX_FETCHED_BYTES = 64 * MIB
"""A row group of an object store is fetched at once, as stored, up to this size."""
_MAX_OPEN_FILES = 16


@dataclass(frozen=True, slots=True)
class Needs:
    num_rows: int
    decoded_bytes: int
    max_row_bytes: float  # over about a thousand consecutive rows; not the largest single row
    page_bytes: int  # pages and dictionaries of all columns at once
    group_bytes: int
    """The same for those columns that are decoded together where the row group is decoded whole."""
    held_bytes: int  # what is fetched of an object store at once

    def parts(self, limit_bytes: int) -> tuple[int, int, int]:
        """Rows at a time where the share is so large, their bytes, and what is needed in all."""
        max_bytes = min(limit_bytes // _PART_SHARE, _MAX_PART_BYTES)
        rows = max(1, min(int(max_bytes / self.max_row_bytes), _MAX_PART_ROWS, self.num_rows))
        part_bytes = int(rows * self.max_row_bytes)
        return rows, part_bytes, self.page_bytes + _PARTS * part_bytes

    @property
    def whole_bytes(self) -> int:
        return self.decoded_bytes + self.group_bytes + self.held_bytes


@dataclass(frozen=True)
class ScannedParquet(ScannedFiles):
    files: tuple[DataFile, ...]
    fingerprints: tuple[Fingerprint, ...]
    columns: pa.Schema
    groups: tuple[RowGroup, ...]

    @cached_property
    def blocks(self) -> Blocks:
        return Blocks.of((group.file_index, group.first_row, group.num_rows) for group in self.groups)

    @cached_property
    def sample(self) -> Sample:
        return take_sample(self.files, self.columns, self.groups)

    @property
    def row_bytes(self) -> int:
        return -int(-self.sample.row_bytes // 1) + ROW_ID_BYTES if self.groups else 1

    @cached_property
    def needs(self) -> tuple[Needs, ...]:
        has_strings = any(group.strings for group in self.groups)
        string_bytes = self.sample.string_bytes if has_strings else {}
        needs = []
        for group in self.groups:
            decoded_bytes, max_page_bytes = group.number_bytes, group.max_page_bytes
            page_bytes = group.page_bytes
            max_row_bytes = 1 + group.number_bytes / group.num_rows
            for chunk in group.strings:
                mean, peak = string_bytes.get(chunk.column, (0.0, 0.0))
                decoded_bytes += max(chunk.uncompressed_bytes, int(mean * group.num_rows))
                max_row_bytes += max(peak, chunk.uncompressed_bytes / group.num_rows)
                # A writer looks at the size of a page when it has added a thousand values.
                usual_bytes = int(1024 * peak * group.num_rows / max(1, chunk.num_values))
                chunk_bytes = page_size(chunk.uncompressed_bytes, chunk.has_dictionary, usual_bytes)
                page_bytes += chunk_bytes
                max_page_bytes = max(max_page_bytes, chunk_bytes)
            group_bytes = max(max_page_bytes, min(page_bytes, _GROUP_BYTES))
            is_remote = is_uri(self.files[group.file_index].path)
            held_bytes = group.stored_bytes if is_remote and group.stored_bytes <= _MAX_FETCHED_BYTES else 0
            needs.append(
                Needs(group.num_rows, decoded_bytes, max_row_bytes, page_bytes, group_bytes, held_bytes)
            )
        return tuple(needs)

    @cached_property
    def min_bytes(self) -> int:
        """To a KiB; row groups are decoded in parts, unless they fit whole sooner."""
        low, high = 0, 1
        while not _split(self.needs, high * KIB)[0]:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _split(self.needs, middle * KIB)[0] else (middle, high)
        return high * KIB

    @cached_property
    def ample_bytes(self) -> int:
        """Row groups are decoded whole, unless they are huge, and those of object stores fetched at once."""
        whole = [need for need in self.needs if need.decoded_bytes <= _MAX_WHOLE_BYTES]
        huge = [need for need in self.needs if need.decoded_bytes > _MAX_WHOLE_BYTES]
        retained_bytes = max((need.decoded_bytes for need in whole), default=0)
        needed_bytes = [need.whole_bytes for need in whole]
        needed_bytes += [need.parts(_PART_SHARE * _MAX_PART_BYTES)[2] + need.held_bytes for need in huge]
        return max(MIB, self.min_bytes, -(-(retained_bytes + max(needed_bytes, default=0)) // MIB) * MIB)

    @cached_property
    def block_bytes(self) -> int:
        sizes = (need.decoded_bytes for need in self.needs)
        return max([1, *(size if size <= _MAX_WHOLE_BYTES else _MAX_PART_BYTES for size in sizes)])

    def decoder(self, share: Share) -> BlockDecoder:
        return ParquetDecoder(self, share)


def scan_parquet(_: ReadingSection, files: Sequence[DataFile], request: ReadRequest) -> ScannedFiles:
    """Read all footers. A file without rows has no types to disagree with: writers often know none for it."""
    schema: pa.Schema | None = None
    columns, first_path = request.columns, files[0].path
    groups: list[RowGroup] = []
    marks: list[Fingerprint] = []
    for file_index, file in enumerate(files):
        with OpenParquet(file) as opened:
            num_rows = opened.metadata.num_rows
            if num_rows or (schema is None and file_index == len(files) - 1):
                first_path = file.path if schema is None else first_path
                projected = project(opened.schema_arrow, columns, file.path)
                schema = join_schemas(schema, first_path, projected, file.path)
                columns = schema.names
                groups += read_row_groups(opened.metadata, file_index, columns)
        marks.append(fingerprint(file, num_rows, footer_checksum(file)))
    if schema is None:
        raise DataError("no Parquet files are given")
    return ScannedParquet(tuple(files), tuple(marks), schema, tuple(groups))


def _split(needs: Sequence[Needs], limit_bytes: int) -> tuple[bool, int, int]:
    """Whether the share is enough, up to which size row groups are decoded whole, and what any one in work may need.

    As many row groups whole as any two neighbours fit the share, whatever their order; -1: none.
    """
    by_size = sorted(needs, key=lambda need: need.decoded_bytes)
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
        with reading_file(file):
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
        with opened.holding(group.index, names if need.held_bytes else ()):
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
        with opened.holding(group.index, self._names if is_fetched else ()):
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
