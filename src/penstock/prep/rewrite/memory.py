"""Who gets how many bytes of a rewrite, decided before the first row is read."""

from dataclasses import dataclass

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.prep.profile.memory import memory_limit
from penstock.prep.rewrite.options import RewriteOptions
from penstock.prep.rewrite.shuffling import ShuffleSizes
from penstock.readers.survey import Survey
from penstock.runtime.budget import Share

_GROUP_COPIES = 3
"""A row group that waits, the last piece beyond it, and its columns as they are encoded."""
_BUCKET_COPIES = 2.5
"""A bucket as it is read, as it is joined, and the rows that are drawn from it."""
_WAITING_COPIES = 2
"""Rows that wait for their buckets, and what is being written of them."""
_LEAST_WAITING_BYTES = 8 * MIB
_MOST_WAITING_BYTES = 128 * MIB
_LEAST_BUCKET_BYTES = 4 * MIB
_MOST_BUCKET_BYTES = 512 * MIB
"""The offsets of texts of one bucket must fit 31 bits, and larger ones are not faster."""
_PIECES = 16
"""What waits is so many times what is taken at once."""
SETTING = "--memory"


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """What reading and shuffling may hold; writing holds row groups as the options say."""

    reader: Share
    shuffle: ShuffleSizes


def share_memory(survey: Survey, options: RewriteOptions, process_bytes: int) -> MemoryShares:
    """Divide what the process does not take already; an eighth of it stays free.

    The passes of a shuffle come one after the other: the first has the reader and rows that wait for their buckets, the
    second a bucket and a row group.
    """
    limit_bytes = memory_limit(options.memory_bytes, process_bytes)
    usable_bytes = _usable_bytes(options, process_bytes)
    group_bytes = _GROUP_COPIES * options.row_group_bytes
    if options.shuffle:
        reader_bytes = max(survey.least_bytes, min(survey.ample_bytes, usable_bytes // 2))
        least_bytes = max(
            survey.least_bytes + _WAITING_COPIES * _LEAST_WAITING_BYTES,
            group_bytes + int(_BUCKET_COPIES * _LEAST_BUCKET_BYTES),
        )
    else:
        reader_bytes = max(survey.least_bytes, min(survey.ample_bytes, usable_bytes - group_bytes))
        least_bytes = survey.least_bytes + group_bytes
    if usable_bytes < least_bytes:
        raise BudgetExceeded(
            f"rewriting needs at least {format_size(process_bytes + least_bytes * 8 // 7 + MIB)}, row groups of "
            f"{format_size(options.row_group_bytes)} among it, but may hold {format_size(limit_bytes)}; "
            f"raise {SETTING}, or lower --row-group"
        )
    waiting_bytes = min(_MOST_WAITING_BYTES, (usable_bytes - reader_bytes) // _WAITING_COPIES)
    sizes = ShuffleSizes(
        bucket_bytes=min(_MOST_BUCKET_BYTES, int((usable_bytes - group_bytes) / _BUCKET_COPIES)),
        waiting_bytes=waiting_bytes,
        piece_rows=max(1, min(waiting_bytes // _PIECES, options.row_group_bytes) // survey.row_bytes),
    )
    return MemoryShares(Share("the reader", reader_bytes, SETTING), sizes)


def share_verifying(survey: Survey, options: RewriteOptions, process_bytes: int) -> Share:
    """What reading the written files may hold: nothing else is at work then."""
    usable_bytes = _usable_bytes(options, process_bytes)
    return Share("the reader", max(survey.least_bytes, min(survey.ample_bytes, usable_bytes)), SETTING)


def _usable_bytes(options: RewriteOptions, process_bytes: int) -> int:
    return max(0, memory_limit(options.memory_bytes, process_bytes) - process_bytes) * 7 // 8
