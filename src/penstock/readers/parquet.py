"""Parquet files, row group by row group, inside the reader's share.

A row group is decoded whole where two of them fit the share: one that is still handed out as views, and the
next one. A larger one is decoded a few rows at a time, page by page. Never through the dataset scanner, which
reads ahead without a bound.
"""

from collections.abc import Iterator, Sequence
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import check_same_files, check_same_seed, fingerprint
from penstock.readers.leasing import RollingLease
from penstock.readers.order import block_order
from penstock.readers.origin import ROW_FIELD, with_row_ids
from penstock.readers.parquet_layout import Block, open_file, read_layout, reading_file
from penstock.readers.parquet_plan import BlockPlan, plan_blocks
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Reader
from penstock.runtime.budget import Share
from penstock.runtime.state import State

_MOST_OPEN_FILES = 16


def open_parquet(
    reading: ReadingSection,  # noqa: ARG001 - every reader is opened alike
    files: Sequence[DataFile],
    columns: Sequence[str] | None,
    share: Share,
    *,
    block_shuffle_seed: int | None = None,
) -> Reader:
    """The rows of Parquet files. The files say their own types: no option of `reading` is needed."""
    return ParquetStream(files, columns, share, block_shuffle_seed)


class ParquetStream:
    """A stream over row groups; its place: the epoch, how many row groups are done, the row in the next."""

    def __init__(
        self,
        files: Sequence[DataFile],
        columns: Sequence[str] | None,
        share: Share,
        block_shuffle_seed: int | None = None,
    ) -> None:
        layout = read_layout(files, columns)
        self._files = tuple(files)
        self._columns = layout.schema
        self._blocks = layout.blocks
        self._plans = plan_blocks(layout.blocks, files, share)
        self._share = share
        self._seed = block_shuffle_seed
        self._fingerprints = [
            fingerprint(file, rows) for file, rows in zip(files, layout.file_rows, strict=True)
        ]
        self.num_rows = sum(layout.file_rows)
        """Rows of one epoch."""
        self._session = _Session(files, share)
        self.set_epoch(0)

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
        with _Session(self._files, self._share) as session:
            self._session = session
            while self._num_blocks_done < len(self._blocks):
                index = int(self._order[self._num_blocks_done])
                yield from self._rows_of(self._blocks[index], self._plans[index], session)

    def _rows_of(self, block: Block, plan: BlockPlan, session: "_Session") -> Iterator[pa.RecordBatch]:
        """The rows of a block from the present row on; the place is moved before each batch is given out."""
        skip, end = self._row, 0
        for batch in session.decode(block, plan, self._columns.names):
            start, end = end, end + batch.num_rows
            if end > skip:
                self._move(block, end)
                first = max(start, skip)
                rows = self._as_given_out(batch.slice(first - start))
                yield with_row_ids(rows, block.file_index, block.first_row + first)

    def _move(self, block: Block, row: int) -> None:
        is_done = row == block.num_rows
        self._num_blocks_done += is_done
        self._row = 0 if is_done else row

    def _as_given_out(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        batch = batch.select(self._columns.names)
        if batch.schema.types != self._columns.types:
            return batch.cast(self._columns)
        return pa.RecordBatch.from_arrays(batch.columns, schema=self._columns)


class _Session:
    """What one iteration holds: open files, and the bytes of the block in work and of the one before."""

    def __init__(self, files: Sequence[DataFile], share: Share) -> None:
        self._files = files
        self._lease = RollingLease(share)
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

    def decode(self, block: Block, plan: BlockPlan, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of a block, as its plan says."""
        self._lease.move_on(plan.needed_bytes, plan.retained_bytes)
        file = self._open(block)
        columns = list(names)
        with reading_file(self._files[block.file_index]):
            if plan.batch_rows is None:
                yield from file.read_row_group(
                    block.row_group, columns=columns, use_threads=False
                ).to_batches()
            else:
                yield from file.iter_batches(
                    plan.batch_rows, row_groups=[block.row_group], columns=columns, use_threads=False
                )

    def _open(self, block: Block) -> pq.ParquetFile:
        """The file of a block; some stay open, since reading a footer again may cost as much as a block."""
        opened = self._opened.pop(block.file_index, None)
        if opened is None:
            if len(self._opened) == _MOST_OPEN_FILES:
                self._opened.pop(next(iter(self._opened))).close()
            opened = open_file(self._files[block.file_index])
        self._opened[block.file_index] = opened
        _check_unchanged(block, opened.metadata, self._files[block.file_index])
        return opened


def _check_unchanged(block: Block, metadata: pq.FileMetaData, file: DataFile) -> None:
    is_there = block.row_group < metadata.num_row_groups
    if not is_there or metadata.row_group(block.row_group).num_rows != block.num_rows:
        raise DataError(f"{file.path}: has changed while it was being read")
