"""Parquet files, row group by row group, inside the reader's share.

A row group is decoded whole where two of them fit the share: one that is still handed out as views, and the
next one. A larger one is decoded a few rows at a time, page by page. Texts that stand in dictionaries are
decoded as such, and written out a few rows at a time: see `parquet_layout.py` for why. Never through the
dataset scanner, which reads ahead without a bound.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import check_same_files, check_same_seed
from penstock.readers.leasing import RollingLease
from penstock.readers.order import block_order
from penstock.readers.origin import ROW_FIELD, with_row_ids
from penstock.readers.parquet_decode import BlockDecoder
from penstock.readers.parquet_layout import Block, Layout, open_file, read_layout, reading_file
from penstock.readers.parquet_plan import BlockPlan, ample_bytes, least_bytes, most_needed_bytes, plan_blocks
from penstock.readers.parquet_sample import sampled_row_bytes
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Reader
from penstock.readers.survey import Survey
from penstock.runtime.budget import Share
from penstock.runtime.state import State

_MOST_OPEN_FILES = 16


@dataclass(frozen=True)
class ParquetSurvey:
    """What the footers of the files say."""

    files: tuple[DataFile, ...]
    layout: Layout

    @property
    def schema(self) -> pa.Schema:
        """The wanted columns and `ROW_COLUMN`."""
        return self.layout.schema.append(ROW_FIELD)

    @property
    def num_rows(self) -> int:
        """Rows of one epoch."""
        return sum(self.layout.file_rows)

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
        """Row groups are decoded whole, unless they are huge."""
        return ample_bytes(self.layout.blocks)

    def open(self, share: Share, block_shuffle_seed: int | None = None) -> Reader:
        """The rows of the files; with a seed, the order of all row groups is permuted per epoch."""
        return ParquetStream(self.files, self.layout, share, block_shuffle_seed)


def survey_parquet(
    reading: ReadingSection,  # noqa: ARG001 - every format is surveyed alike
    files: Sequence[DataFile],
    columns: Sequence[str] | None,
    text_columns: Collection[str] = (),  # noqa: ARG001
) -> Survey:
    """Read the footers. The files say their own types: no option of `reading` is needed."""
    return ParquetSurvey(tuple(files), read_layout(files, columns))


class ParquetStream:
    """A stream over row groups; its place: the epoch, how many row groups are done, the row in the next."""

    def __init__(
        self,
        files: Sequence[DataFile],
        layout: Layout,
        share: Share,
        block_shuffle_seed: int | None = None,
    ) -> None:
        self._files = tuple(files)
        self._layout = layout
        self._columns = layout.schema
        self._blocks = layout.blocks
        self._plans = plan_blocks(layout.blocks, files, share)
        self._share = share
        self._seed = block_shuffle_seed
        self._fingerprints = list(layout.fingerprints)
        self.num_rows = sum(layout.file_rows)
        """Rows of one epoch."""
        self._session = self._new_session()
        self.set_epoch(0)

    def _new_session(self) -> "_Session":
        most_bytes = most_needed_bytes(self._plans, self._share.limit_bytes)
        return _Session(self._files, self._layout, self._share, RollingLease(self._share, most_bytes))

    @property
    def schema(self) -> pa.Schema:
        """The wanted columns and `ROW_COLUMN`."""
        return self._columns.append(ROW_FIELD)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self._go_to(epoch, num_blocks_done=0, row=0)

    def state_dict(self) -> State:
        """The place after the last batch."""
        return {
            "epoch": self._epoch,
            "num_blocks_done": self._num_blocks_done,
            "row": self._row,
            "seed": self._seed,
            "files": self._fingerprints,
        }

    def load_state_dict(self, state: State) -> None:
        """Go to a place that was saved with the same files and the same seed."""
        check_same_files(state["files"], self._fingerprints, self._files)
        check_same_seed(state["seed"], self._seed)
        self._go_to(state["epoch"], state["num_blocks_done"], state["row"])

    def _go_to(self, epoch: int, num_blocks_done: int, row: int) -> None:
        self._epoch = epoch
        self._num_blocks_done = num_blocks_done
        self._row = row
        self._order = block_order(len(self._blocks), self._seed, epoch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Record batches from the present place on: a whole row group each, or a part of a large one."""
        self._session.close()
        with self._new_session() as session:
            self._session = session
            while self._num_blocks_done < len(self._blocks):
                index = int(self._order[self._num_blocks_done])
                yield from self._rows_of(self._blocks[index], self._plans[index], session)

    def _rows_of(self, block: Block, plan: BlockPlan, session: "_Session") -> Iterator[pa.RecordBatch]:
        """The rows of a block from the present row on; the place is moved before each batch is given out."""
        skip, end = self._row, 0
        for batch in session.decode(block, plan):
            start, end = end, end + batch.num_rows
            if end > skip:
                self._move(block, end)
                first = max(start, skip)
                yield with_row_ids(batch.slice(first - start), block.file_index, block.first_row + first)

    def _move(self, block: Block, row: int) -> None:
        is_done = row == block.num_rows
        self._num_blocks_done += is_done
        self._row = 0 if is_done else row


class _Session:
    """What one iteration holds: open files, and the bytes of the block in work and of the one before."""

    def __init__(self, files: Sequence[DataFile], layout: Layout, share: Share, lease: RollingLease) -> None:
        self._files = files
        self._layout = layout
        self._share = share
        self._lease = lease
        self._opened: dict[int, pq.ParquetFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def decode(self, block: Block, plan: BlockPlan) -> Iterator[pa.RecordBatch]:
        """All rows of a block, as its plan says."""
        file = self._files[block.file_index]
        texts = self._layout.texts[block.file_index]
        decoder = BlockDecoder(file, self._open(block), self._layout.schema, texts, self._share, self._lease)
        with reading_file(file):
            yield from decoder.batches(block, plan)

    def _open(self, block: Block) -> pq.ParquetFile:
        """The file of a block; some stay open, since reading a footer again may cost as much as a block."""
        opened = self._opened.pop(block.file_index, None)
        if opened is None:
            if len(self._opened) == _MOST_OPEN_FILES:
                self._opened.pop(next(iter(self._opened))).close()
            texts = self._layout.texts[block.file_index]
            opened = open_file(self._files[block.file_index], texts.coded)
        self._opened[block.file_index] = opened
        _check_unchanged(block, opened.metadata, self._files[block.file_index])
        return opened


def _check_unchanged(block: Block, metadata: pq.FileMetaData, file: DataFile) -> None:
    is_there = block.row_group < metadata.num_row_groups
    if not is_there or metadata.row_group(block.row_group).num_rows != block.num_rows:
        raise DataError(f"{file.path}: has changed while it was being read")
