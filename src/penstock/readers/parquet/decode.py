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
        plan, groups = self._settled(block, plan)
        first_row = block.first_row
        parts = self._whole(block, groups) if plan.batch_rows is None else self._paged(block, plan, groups)
        for part in parts:
            if part.schema.types == self._schema.types:
                yield pa.RecordBatch.from_arrays(part.columns, schema=self._schema)
            else:
                yield from self._written_out(part, plan, first_row)
            first_row += part.num_rows

    def _settled(self, block: RowGroup, plan: BlockPlan) -> tuple[BlockPlan, list[list[str]]]:
        """The plan that the texts and pages which are really there allow, and the columns to decode together."""
        mixed = self._texts.mixed
        worst_bytes = worst_text_bytes(self._file, self._opened.metadata, block, mixed) if mixed else 0
        groups, page_bytes = self._column_groups(block, plan)
        if plan.in_parts is not None:
            if self._cover_pages(plan, page_bytes) and self._cover(worst_bytes - plan.batch_bytes, 1):
                return plan, groups
            plan = self._changed(plan.in_parts)
            groups, page_bytes = self._column_groups(block, plan)
        if not self._cover_pages(plan, page_bytes):
            # Several groups of columns would be read anew for each of the smaller batches.
            smaller = self._changed(plan.in_smaller_batches(_SHRINK)) if len(groups) == 1 else plan
            if not self._cover_pages(smaller, page_bytes):
                raise BudgetExceeded(self._pages_too_large(block, smaller, page_bytes))
            plan = smaller
        return replace(plan, batch_rows=self._fitting_rows(block, plan, worst_bytes)), groups

    def _changed(self, plan: BlockPlan) -> BlockPlan:
        """Another plan for the block in work, with its bytes leased."""
        self._lease.change(plan.needed_bytes, plan.retained_bytes)
        self._extra_bytes = 0
        return plan

    def _fitting_rows(self, block: RowGroup, plan: BlockPlan, worst_bytes: int) -> int:
        """How many rows at a time: fewer than planned where the longest text in every row would not fit."""
        batch_rows = plan.batch_rows or 1
        if self._cover(_COPIES * worst_bytes * batch_rows // block.num_rows - plan.batch_bytes):
            return batch_rows
        batch_bytes = self._share.limit_bytes // _MIXED_SHARE
        if not self._cover(_COPIES * (batch_bytes - plan.batch_bytes)):
            batch_bytes = plan.batch_bytes
        return min(batch_rows, max(1, batch_bytes * block.num_rows // worst_bytes))

    def _whole(self, block: RowGroup, groups: Sequence[list[str]]) -> Iterator[pa.RecordBatch]:
        columns: dict[str, Any] = {}
        for names in groups:
            table = self._opened.read_row_group(block.index, columns=names, use_threads=self._on_threads)
            columns.update({name: table.column(name) for name in names})
        yield from pa.table({name: columns[name] for name in self._schema.names}).to_batches()

    def _paged(
        self, block: RowGroup, plan: BlockPlan, groups: Sequence[list[str]]
    ) -> Iterator[pa.RecordBatch]:
        batch_rows, done = plan.batch_rows or 1, 0
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

    def _column_groups(self, block: RowGroup, plan: BlockPlan) -> tuple[list[list[str]], int]:
        """The wanted columns in groups whose pages fit together, and the most that the pages of one take.

        Where they may not fit, all pages are looked at.
        """
        if block.most_paging_bytes <= plan.group_bytes:
            return [list(self._schema.names)], block.most_paging_bytes
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
        return groups, most_bytes

    def _cover_pages(self, plan: BlockPlan, page_bytes: int) -> bool:
        """Whether the block may hold such pages at once; the lease grows to it."""
        return page_bytes <= plan.group_bytes or self._lease.grow(page_bytes - plan.group_bytes)

    def _pages_too_large(self, block: RowGroup, plan: BlockPlan, page_bytes: int) -> str:
        limit_bytes, room_bytes = self._share.limit_bytes, self._lease.most_needed_bytes
        needed_bytes = plan.needed_bytes + page_bytes - plan.group_bytes
        room = f"{self._share.name} may hold {format_size(limit_bytes)}"
        if room_bytes < limit_bytes:
            kept = format_size(limit_bytes - room_bytes)
            room += f", of which {kept} are for rows of the row group before that are still in use"
        return (
            f"{self._file.path}: row group {block.index} has pages that need {format_size(needed_bytes)} in all, "
            f"but {room}; raise {self._share.setting}, or write the file with smaller pages"
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
