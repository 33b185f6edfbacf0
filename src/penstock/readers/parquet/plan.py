"""Deciding before the start how each row group is decoded, so that the reader stays inside its share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.files import DataFile
from penstock.readers.parquet.layout import RowGroup
from penstock.runtime.budget import Share

_MOST_WHOLE_BYTES = 64 * MIB
"""Larger row groups are decoded no faster whole than in parts (measured), and hold more."""
_MOST_BATCH_BYTES = 16 * MIB
_BATCH_SHARE = 16
"""A batch that is decoded page by page, or whose texts are written out, takes this part of the share..."""
_BATCHES = 3
"""...and so many of them exist at once: one being made, one being cut, one handed out."""
_MOST_PAGED_ROWS = 65_536
_WIDE_BATCH_SHARE = 8
_WIDE_GROUP_SHARE = 4
_MOST_PASSES = 16
"""How often the pages of a column may be read when not all columns fit at once."""
_WHOLE_GROUP_BYTES = 16 * MIB
"""Pages of columns that are open at once where a row group is decoded whole."""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """How one row group is decoded."""

    batch_rows: int | None
    """Rows per batch; None: the whole row group at once."""
    needed_bytes: int
    """What the reader holds while it decodes the row group."""
    retained_bytes: int
    """What may still be in use, as views, while the next row group is decoded."""
    group_bytes: int
    """Columns are decoded in groups whose pages take at most this."""
    batch_bytes: int
    """What a batch may take, decoded in part or with its texts written out."""
    in_parts: "BlockPlan | None" = None
    """Of a whole row group: how it is decoded where its texts or pages turn out too large for that."""

    def in_smaller_batches(self, times: int) -> "BlockPlan":
        """The same with so many times fewer rows at a time, which leaves more for pages."""
        batch_bytes = max(1, self.batch_bytes // times)
        return replace(
            self,
            batch_rows=max(1, (self.batch_rows or 1) // times),
            needed_bytes=self.needed_bytes - _BATCHES * (self.batch_bytes - batch_bytes),
            batch_bytes=batch_bytes,
        )


def plan_blocks(blocks: Sequence[RowGroup], files: Sequence[DataFile], share: Share) -> list[BlockPlan]:
    """Whole where two row groups fit the share (and are not huge), else page by page.

    What one block needs, whole or in parts, and what its predecessor retains always fit the share together, in any
    order. Raises BudgetExceeded where a row group does not even fit page by page.
    """
    whole = [_whole(block, share.limit_bytes) for block in blocks]
    paged = [_paged(block, share.limit_bytes) for block in blocks]
    most_retained_bytes = _most_retained_bytes(whole, paged, share.limit_bytes)
    plans = []
    for block, at_once, by_page in zip(blocks, whole, paged, strict=True):
        is_whole = at_once.retained_bytes <= most_retained_bytes
        if not is_whole and by_page.needed_bytes > share.limit_bytes:
            raise BudgetExceeded(_too_large(block, by_page, files[block.file_index], share))
        plans.append(replace(at_once, in_parts=by_page) if is_whole else by_page)
    return plans


def most_needed_bytes(plans: Sequence[BlockPlan], limit_bytes: int) -> int:
    """To what a block in work may grow beyond its plan; the rest of the share is for what blocks retain."""
    ways = [*plans, *(plan.in_parts for plan in plans if plan.in_parts is not None)]
    needed_bytes = max((plan.needed_bytes for plan in ways), default=0)
    retained_bytes = max((plan.retained_bytes for plan in plans), default=0)
    if not retained_bytes:
        return limit_bytes
    return needed_bytes + (limit_bytes - needed_bytes - retained_bytes) // 2


def least_bytes(blocks: Iterable[RowGroup]) -> int:
    """The smallest share with which the blocks can be read, to a KiB."""
    low, high = 0, 1
    largest = _largest(blocks)
    while not _fit(largest, high * KIB):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fit(largest, middle * KIB) else (middle, high)
    return high * KIB


def ample_bytes(blocks: Iterable[RowGroup]) -> int:
    """The share with which the blocks are read fastest."""
    high = 1
    largest = _largest(blocks)
    while not all(_is_ample(block, high * MIB) for block in largest):
        high += max(1, high // 8)
    return high * MIB


def block_bytes(blocks: Iterable[RowGroup]) -> int:
    """The most that one batch takes: a row group that is decoded whole, or a part of a larger one."""
    sizes = [block.decoded_bytes for block in blocks]
    whole_bytes = max((size for size in sizes if size <= _MOST_WHOLE_BYTES), default=0)
    return max(whole_bytes, min(max(sizes, default=0), _MOST_BATCH_BYTES), 1)


def _is_ample(block: RowGroup, limit_bytes: int) -> bool:
    whole, paged = _whole(block, limit_bytes), _paged(block, limit_bytes)
    if block.decoded_bytes <= _MOST_WHOLE_BYTES:
        return whole.retained_bytes + max(whole.needed_bytes, paged.needed_bytes) <= limit_bytes
    is_full_size = limit_bytes // _BATCH_SHARE >= _MOST_BATCH_BYTES or paged.batch_rows == _MOST_PAGED_ROWS
    return is_full_size and paged.group_bytes >= block.paging_bytes and paged.needed_bytes <= limit_bytes


def _largest(blocks: Iterable[RowGroup]) -> list[RowGroup]:
    """The few blocks that decide, by each measure."""
    blocks = list(blocks)
    if not blocks:
        return []
    measures = (
        lambda block: block.decoded_bytes,
        lambda block: block.decoded_bytes if block.decoded_bytes <= _MOST_WHOLE_BYTES else 0,
        lambda block: block.decoded_bytes / block.num_rows,
        lambda block: block.paging_bytes,
        lambda block: block.column_bytes,
        lambda block: block.dictionary_bytes,
    )
    return [max(blocks, key=measure) for measure in measures]


def _fit(blocks: Sequence[RowGroup], limit_bytes: int) -> bool:
    return all(_paged(block, limit_bytes).needed_bytes <= limit_bytes for block in blocks)


def _most_retained_bytes(whole: Sequence[BlockPlan], paged: Sequence[BlockPlan], limit_bytes: int) -> int:
    """The size up to which row groups are decoded whole: the largest with which any two neighbours fit.

    Any of them may turn out too large for that, and is then decoded in parts.
    """
    order = sorted(range(len(whole)), key=lambda index: whole[index].retained_bytes)
    most_paged_bytes = max((plan.needed_bytes for plan in paged), default=0)
    most_whole_bytes = list(accumulate((whole[index].needed_bytes for index in order), max))
    for rank, index in reversed(list(enumerate(order))):
        retained_bytes = whole[index].retained_bytes
        neighbour_bytes = max(most_whole_bytes[rank], most_paged_bytes)
        is_small = retained_bytes - whole[index].batch_bytes <= _MOST_WHOLE_BYTES
        if is_small and retained_bytes + neighbour_bytes <= limit_bytes:
            return retained_bytes
    return -1


def _text_bytes(block: RowGroup, limit_bytes: int) -> int:
    """What a batch may grow by when its texts are written out."""
    return min(limit_bytes // _BATCH_SHARE, _MOST_BATCH_BYTES) if block.has_coded_texts else 0


def _whole(block: RowGroup, limit_bytes: int) -> BlockPlan:
    is_bounded = block.most_paging_bytes <= _WHOLE_GROUP_BYTES
    paging_bytes = block.most_paging_bytes if is_bounded else block.paging_bytes
    group_bytes = max(block.column_bytes, min(paging_bytes, _WHOLE_GROUP_BYTES))
    text_bytes = _text_bytes(block, limit_bytes)
    needed_bytes = block.decoded_bytes + block.hashing_bytes + group_bytes + _BATCHES * text_bytes
    return BlockPlan(None, needed_bytes, block.decoded_bytes + text_bytes, group_bytes, text_bytes)


def _paged(block: RowGroup, limit_bytes: int) -> BlockPlan:
    """All columns at once where their pages fit, else in groups, each read anew for every batch."""
    most_bytes = min(limit_bytes // _BATCH_SHARE, _MOST_BATCH_BYTES)
    narrow = _in_parts(block, limit_bytes, most_bytes, _MOST_PAGED_ROWS, block.paging_bytes)
    if narrow.needed_bytes <= limit_bytes:
        return narrow
    group_bytes = max(block.column_bytes, limit_bytes // _WIDE_GROUP_SHARE)
    wide = _in_parts(block, limit_bytes, limit_bytes // _WIDE_BATCH_SHARE, block.num_rows, group_bytes)
    num_passes = -(-block.num_rows // (wide.batch_rows or 1))
    return wide if num_passes <= _MOST_PASSES and wide.needed_bytes < narrow.needed_bytes else narrow


def _in_parts(
    block: RowGroup, limit_bytes: int, most_bytes: int, most_rows: int, group_bytes: int
) -> BlockPlan:
    varying_bytes = block.decoded_bytes + block.hashing_bytes - block.dictionary_bytes
    row_bytes = max(1.0, varying_bytes / block.num_rows)
    batch_rows = max(1, min(int(most_bytes / row_bytes), most_rows, block.num_rows))
    batch_bytes = int(batch_rows * row_bytes)
    text_bytes = _text_bytes(block, limit_bytes)
    # Dictionaries exist twice: in the batch that is being made, and in the one that is being cut.
    needed_bytes = group_bytes + _BATCHES * (batch_bytes + text_bytes) + 2 * block.dictionary_bytes
    return BlockPlan(batch_rows, needed_bytes, 0, group_bytes, max(batch_bytes, text_bytes))


def _too_large(block: RowGroup, plan: BlockPlan, file: DataFile, share: Share) -> str:
    return (
        f"{file.path}: row group {block.index} needs {format_size(plan.needed_bytes)} even when it is "
        f"decoded page by page, but {share.name} may hold {format_size(share.limit_bytes)}; "
        f"raise {share.setting}, read fewer columns, or write the file with smaller pages"
    )
