"""One row group -> record batches, as its plan says, held against what really comes.

The plan counts lists and plain texts by their mean over the row group, which the footer tells. Where a batch
comes out larger than planned, the lease grows; where it cannot, the rows are decoded again in smaller batches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import format_size
from penstock.readers.files import DataFile
from penstock.readers.leasing import RollingLease
from penstock.readers.parquet.layout import RowGroup, TextColumns, column_costs
from penstock.readers.parquet.mixed_texts import worst_text_bytes
from penstock.readers.parquet.pages import all_pages
from penstock.readers.parquet.plan import BlockPlan
from penstock.readers.parquet.stored import OpenParquet
from penstock.readers.parquet.texts import cuts, write_out, written_out_ends
from penstock.runtime.budget import Share

_SHRINK = 8
"""Rows that take too much are decoded again in batches so many times smaller."""
_COPIES = 3
_MIXED_SHARE = 16
"""The part of the share that a batch takes where every text might be the longest."""


class RowGroupDecoder:
    """Decodes row groups of one file into batches of one schema; `on_threads`: whole ones with all cores."""

    def __init__(
        self,
        file: DataFile,
        opened: OpenParquet,
        schema: pa.Schema,
        texts: TextColumns,
        share: Share,
        lease: RollingLease,
        on_threads: bool = False,
    ) -> None:
        self._file = file
        self._opened = opened
        self._schema = schema
        self._texts = texts
        self._share = share
        self._lease = lease
        self._on_threads = on_threads
        self._extra_bytes = 0

    def batches(self, block: RowGroup, plan: BlockPlan) -> Iterator[pa.RecordBatch]:
        """All rows of a block, in batches that take at most what the plan says."""
        self._lease.move_on(plan.needed_bytes, plan.retained_bytes)
        self._extra_bytes = 0
        plan = self._with_mixed_texts(block, plan)
        first_row = block.first_row
        parts = self._whole(block, plan) if plan.batch_rows is None else self._paged(block, plan)
        for part in parts:
            if part.schema.types == self._schema.types:
                yield pa.RecordBatch.from_arrays(part.columns, schema=self._schema)
            else:
                yield from self._written_out(part, plan, first_row)
            first_row += part.num_rows

    def _with_mixed_texts(self, block: RowGroup, plan: BlockPlan) -> BlockPlan:
        """The plan, with fewer rows at a time where the longest text in every row would not fit."""
        if not self._texts.mixed:
            return plan
        worst_bytes = worst_text_bytes(self._file, self._opened.metadata, block, self._texts.mixed)
        batch_rows = plan.batch_rows or block.num_rows
        copies, retained_part = (1, 1) if plan.batch_rows is None else (_COPIES, 0)
        extra_bytes = copies * worst_bytes * batch_rows // block.num_rows - plan.batch_bytes
        if self._cover(extra_bytes, retained_part):
            return plan
        batch_bytes = self._share.limit_bytes // _MIXED_SHARE
        fitting_rows = max(1, batch_bytes * block.num_rows // worst_bytes)
        group_bytes = max(plan.group_bytes, block.paging_bytes)
        self._cover_pages(block, plan, group_bytes - plan.group_bytes)
        return replace(plan, batch_rows=min(batch_rows, fitting_rows), group_bytes=group_bytes)

    def _whole(self, block: RowGroup, plan: BlockPlan) -> Iterator[pa.RecordBatch]:
        groups = self._column_groups(block, plan)
        columns: dict[str, Any] = {}
        for names in groups:
            table = self._opened.read_row_group(block.index, columns=names, use_threads=self._on_threads)
            columns.update({name: table.column(name) for name in names})
        yield from pa.table({name: columns[name] for name in self._schema.names}).to_batches()

    def _paged(self, block: RowGroup, plan: BlockPlan) -> Iterator[pa.RecordBatch]:
        batch_rows, done = plan.batch_rows or 1, 0
        groups = self._column_groups(block, plan)
        while done < block.num_rows:
            for batch in _from_row(done, self._parts(block, groups, batch_rows)):
                if not self._is_held(batch, block, plan):
                    self._check_divisible(batch, block.first_row + done)
                    batch_rows = max(1, batch_rows // _SHRINK)
                    break
                done += batch.num_rows
                yield batch

    def _parts(
        self, block: RowGroup, groups: Sequence[list[str]], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The block in parts of so many rows; with several groups, the pages are read anew for every part."""
        if len(groups) == 1:
            for part in self._iterate(block, groups[0], batch_rows):
                yield part.select(self._schema.names)
            return
        for index in range(-(-block.num_rows // batch_rows)):
            columns: dict[str, Any] = {}
            for names in groups:
                part = next(islice(self._iterate(block, names, batch_rows), index, None))
                columns.update({name: part.column(name) for name in names})
            yield pa.RecordBatch.from_pydict({name: columns[name] for name in self._schema.names})

    def _iterate(self, block: RowGroup, names: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        return self._opened.iter_batches(
            batch_rows, row_groups=[block.index], columns=names, use_threads=False
        )

    def _column_groups(self, block: RowGroup, plan: BlockPlan) -> list[list[str]]:
        """The wanted columns, in groups whose pages fit together; where they may not, pages are looked at."""
        if block.most_paging_bytes <= plan.group_bytes:
            return [list(self._schema.names)]
        costs = column_costs(
            self._opened, block.index, self._schema.names, self._texts.coded, pages_of=all_pages
        )
        groups: list[list[str]] = [[]]
        group_bytes = most_bytes = 0
        for name, cost in costs.items():
            if groups[-1] and group_bytes + cost.paging_bytes > plan.group_bytes:
                groups.append([])
                group_bytes = 0
            groups[-1].append(name)
            group_bytes += cost.paging_bytes
            most_bytes = max(most_bytes, group_bytes)
        self._cover_pages(block, plan, most_bytes - plan.group_bytes)
        return groups

    def _cover_pages(self, block: RowGroup, plan: BlockPlan, extra_bytes: int) -> None:
        if extra_bytes > 0 and not self._lease.grow(extra_bytes):
            raise BudgetExceeded(
                f"{self._file.path}: row group {block.index} has pages that need "
                f"{format_size(plan.needed_bytes + extra_bytes)} in all, but {self._share.name} may hold "
                f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, or write the file with "
                "smaller pages"
            )

    def _is_held(self, batch: pa.RecordBatch, block: RowGroup, plan: BlockPlan) -> bool:
        """Whether the lease covers a batch as it really came."""
        planned_bytes = plan.batch_bytes + block.dictionary_bytes
        return self._cover(_COPIES * (batch.nbytes - planned_bytes))

    def _cover(self, extra_bytes: int, retained_part: int = 0) -> bool:
        """Whether the block may hold so much more than planned; the lease grows to it.

        `retained_part`: one of how many parts stays in use after the block, 0: none.
        """
        missing_bytes = extra_bytes - self._extra_bytes
        if missing_bytes <= 0:
            return True
        if not self._lease.grow(missing_bytes, missing_bytes // retained_part if retained_part else 0):
            return False
        self._extra_bytes = extra_bytes
        return True

    def _check_divisible(self, batch: pa.RecordBatch, row: int) -> None:
        if batch.num_rows == 1:
            raise BudgetExceeded(self._row_too_large(row, batch.nbytes))

    def _written_out(self, part: pa.RecordBatch, plan: BlockPlan, first_row: int) -> Iterator[pa.RecordBatch]:
        """The rows of a part with their texts written out, a few at a time."""
        ends = written_out_ends(part, self._schema, while_made=True)
        for start, end in cuts(ends, plan.batch_bytes):
            row_bytes = int(ends[end] - ends[start])
            retained_part = _COPIES if plan.retained_bytes else 0
            if not self._cover(_COPIES * (row_bytes - plan.batch_bytes), retained_part):
                raise BudgetExceeded(self._row_too_large(first_row + start, row_bytes))
            yield write_out(part.slice(start, end - start), self._schema)

    def _row_too_large(self, row: int, row_bytes: int) -> str:
        return (
            f"{self._file.path}: row {row} takes {format_size(row_bytes)} in memory, and {_COPIES} times that "
            f"while it is handed on, but {self._share.name} may hold {format_size(self._share.limit_bytes)}; "
            f"raise {self._share.setting}, or shorten the row"
        )


def _from_row(row: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches without the rows before one."""
    for batch in batches:
        skipped = min(row, batch.num_rows)
        row -= skipped
        if skipped < batch.num_rows:
            yield batch.slice(skipped)
