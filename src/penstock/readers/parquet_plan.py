"""Deciding before the start how each row group is decoded, so that the reader stays inside its share."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.readers.files import DataFile
from penstock.readers.parquet_layout import Block
from penstock.runtime.budget import Share

_MOST_WHOLE_BYTES = 64 * MIB
"""Larger row groups are decoded no faster whole than in parts (measured), and hold more."""
_PAGED_SHARE = 16
"""A batch of a row group that is decoded page by page takes at most this part of the share..."""
_PAGED_BATCHES = 3
"""...and so many of them exist at once: one being decoded, one being cut, one handed out."""
_MOST_PAGED_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """How one row group is decoded."""

    batch_rows: int | None
    """Rows per batch; None: the whole row group at once."""
    needed_bytes: int
    """What the reader holds while it decodes the row group."""
    retained_bytes: int
    """What may still be in use, as views, while the next row group is decoded."""


def plan_blocks(blocks: Sequence[Block], files: Sequence[DataFile], share: Share) -> list[BlockPlan]:
    """Whole where two row groups fit the share (and are not huge), else page by page.

    What one block needs and what its predecessor retains always fit the share together, in any order. Raises
    BudgetExceeded where a row group does not even fit page by page.
    """
    whole = [_whole(block) for block in blocks]
    paged = [_paged(block, share.limit_bytes) for block in blocks]
    most_retained_bytes = _most_retained_bytes(whole, paged, share.limit_bytes)
    plans = []
    for block, at_once, by_page in zip(blocks, whole, paged, strict=True):
        is_whole = at_once.retained_bytes <= most_retained_bytes
        if not is_whole and by_page.needed_bytes > share.limit_bytes:
            raise BudgetExceeded(_too_large(block, by_page, files[block.file_index], share))
        plans.append(at_once if is_whole else by_page)
    return plans


def _most_retained_bytes(whole: Sequence[BlockPlan], paged: Sequence[BlockPlan], limit_bytes: int) -> int:
    """The size up to which row groups are decoded whole: the largest with which any two neighbours fit."""
    order = sorted(range(len(whole)), key=lambda index: whole[index].retained_bytes)
    most_paged_bytes = 0
    most_whole_bytes = list(accumulate((whole[index].needed_bytes for index in order), max))
    for rank, index in reversed(list(enumerate(order))):
        retained_bytes = whole[index].retained_bytes
        neighbour_bytes = max(most_whole_bytes[rank], most_paged_bytes)
        if retained_bytes <= _MOST_WHOLE_BYTES and retained_bytes + neighbour_bytes <= limit_bytes:
            return retained_bytes
        most_paged_bytes = max(most_paged_bytes, paged[index].needed_bytes)
    return -1


def _whole(block: Block) -> BlockPlan:
    return BlockPlan(None, block.decoded_bytes + block.paging_bytes, retained_bytes=block.decoded_bytes)


def _paged(block: Block, limit_bytes: int) -> BlockPlan:
    row_bytes = max(1.0, block.decoded_bytes / block.num_rows)
    batch_rows = int(limit_bytes // _PAGED_SHARE / row_bytes)
    batch_rows = max(1, min(batch_rows, _MOST_PAGED_ROWS, block.num_rows))
    batch_bytes = int(batch_rows * row_bytes)
    needed_bytes = block.paging_bytes + _PAGED_BATCHES * batch_bytes
    return BlockPlan(batch_rows, needed_bytes, retained_bytes=0)


def _too_large(block: Block, plan: BlockPlan, file: DataFile, share: Share) -> str:
    return (
        f"{file.path}: row group {block.row_group} needs {format_size(plan.needed_bytes)} even when it is "
        f"decoded page by page, but {share.name} may hold {format_size(share.limit_bytes)}; "
        f"raise {share.setting}, read fewer columns, or write the file with smaller pages"
    )
