"""Parquet files, row group by row group, inside the reader's share.

A row group is decoded whole where two of them fit the share: one that is still handed out as views, and the
next one. A larger one is decoded a few rows at a time, page by page. Texts that stand in dictionaries are
decoded as such, and written out a few rows at a time: see `layout.py` for why. Never through the dataset
scanner, which reads ahead without a bound.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.readers.blocks import Blocks
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint
from penstock.readers.leasing import RollingLease
from penstock.readers.parquet.decode import RowGroupDecoder
from penstock.readers.parquet.holding import RestOfShare, ample_held_bytes, most_held_bytes
from penstock.readers.parquet.layout import Layout, RowGroup, open_file, read_layout, reading_file
from penstock.readers.parquet.plan import (
    ample_bytes,
    block_bytes,
    least_bytes,
    most_needed_bytes,
    plan_blocks,
)
from penstock.readers.parquet.sample import sampled_row_bytes
from penstock.readers.parquet.stored import OpenParquet
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import BlockDecoder, Survey, Wanted
from penstock.runtime.budget import Share

_MOST_OPEN_FILES = 16


@dataclass(frozen=True)
class ParquetSurvey(Survey):
    """What the footers of the files say."""

    files: tuple[DataFile, ...]
    layout: Layout

    @property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        """Names, sizes, rows and footers."""
        return self.layout.fingerprints

    @property
    def columns(self) -> pa.Schema:
        """The wanted columns."""
        return self.layout.schema

    @cached_property
    def blocks(self) -> Blocks:
        """The row groups."""
        return Blocks.of((group.file_index, group.first_row, group.num_rows) for group in self.layout.blocks)

    @cached_property
    def row_bytes(self) -> int:
        """From a look at the rows of a few row groups, when somebody asks."""
        return sampled_row_bytes(self.files, self.layout)

    @cached_property
    def least_bytes(self) -> int:
        """Row groups are decoded a few rows at a time."""
        return least_bytes(self.layout.blocks)

    @cached_property
    def ample_bytes(self) -> int:
        """Row groups are decoded whole, unless they are huge, and of stores fetched whole."""
        decoding_bytes = ample_bytes(self.layout.blocks)
        return decoding_bytes + ample_held_bytes(self.layout.blocks, self.files)

    @cached_property
    def block_bytes(self) -> int:
        """The largest row group that is decoded whole, or a slice of a larger one."""
        return block_bytes(self.layout.blocks)

    def decoder(self, share: Share) -> BlockDecoder:
        """Decodes row groups."""
        return ParquetDecoder(self.files, self.layout, share)


def survey_parquet(
    reading: ReadingSection,  # noqa: ARG001 - every format is surveyed alike
    files: Sequence[DataFile],
    wanted: Wanted,
) -> Survey:
    """Read the footers. The files say their own types: no option of `reading` is needed."""
    return ParquetSurvey(tuple(files), read_layout(files, wanted.columns))


class ParquetDecoder(BlockDecoder):
    """Open files, and the bytes of the row group in work and of the one before."""

    def __init__(self, files: Sequence[DataFile], layout: Layout, share: Share) -> None:
        self._files = files
        self._layout = layout
        self._most_held_bytes = most_held_bytes(layout.blocks, files, share.limit_bytes)
        self._whole_share = share
        self._share = RestOfShare(share, self._most_held_bytes)
        self._plans = plan_blocks(layout.blocks, files, self._share)
        self._lease = RollingLease(self._share, most_needed_bytes(self._plans, self._share.limit_bytes))
        self._opened: dict[int, OpenParquet] = {}

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a row group, decoded as its plan says."""
        group = self._layout.blocks[block]
        file = self._files[group.file_index]
        texts = self._layout.texts[group.file_index]
        opened = self._open(group)
        decoder = RowGroupDecoder(
            file, opened, self._layout.schema, texts, self._share, self._lease, on_threads=self.in_hurry
        )
        end = 0
        with reading_file(file), self._fetched(opened, group):
            for batch in decoder.batches(group, self._plans[block]):
                start, end = end, end + batch.num_rows
                if end > first_row:
                    first = max(start, first_row)
                    yield batch.slice(first - start, min(end, end_row) - first)
                if end >= end_row:
                    return

    @contextmanager
    def _fetched(self, opened: OpenParquet, group: RowGroup) -> Iterator[None]:
        """Hold a row group of a store as it is stored, where it fits."""
        if not opened.is_remote or group.stored_bytes > self._most_held_bytes:
            yield
            return
        columns = self._layout.schema.names
        with self._whole_share.lease(group.stored_bytes), opened.holding_row_group(group.index, columns):
            yield

    def _open(self, group: RowGroup) -> OpenParquet:
        """The file of a row group; some stay open, since reading a footer again may cost as much as a group."""
        opened = self._opened.pop(group.file_index, None)
        if opened is None:
            if len(self._opened) == _MOST_OPEN_FILES:
                self._opened.pop(next(iter(self._opened))).close()
            texts = self._layout.texts[group.file_index]
            opened = open_file(self._files[group.file_index], texts.coded)
        self._opened[group.file_index] = opened
        _check_unchanged(group, opened.metadata, self._files[group.file_index])
        return opened


def _check_unchanged(group: RowGroup, metadata: pq.FileMetaData, file: DataFile) -> None:
    is_there = group.index < metadata.num_row_groups
    if not is_there or metadata.row_group(group.index).num_rows != group.num_rows:
        raise DataError(f"{file.path}: has changed while it was being read")
