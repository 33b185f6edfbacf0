"""Whether a disk has the room that a rewrite needs."""

import shutil
from pathlib import Path

from penstock.config.errors import DataError
from penstock.config.sizes import format_size
from penstock.prep.rewrite.estimate import Estimate

_MARGIN_PARTS, _MARGIN_OF = 11, 10
"""Estimates come from a sample: a tenth more must be free."""


def room_needed(expected: Estimate, bucket_bytes: int) -> int:
    """The most that exists at once: buckets are removed as the output grows from them."""
    if not expected.temporary_bytes:
        return expected.output_bytes * _MARGIN_PARTS // _MARGIN_OF
    bucket_bytes = min(bucket_bytes, expected.temporary_bytes)
    most_bytes = max(expected.temporary_bytes, expected.output_bytes) + bucket_bytes
    return most_bytes * _MARGIN_PARTS // _MARGIN_OF


def check_room(folder: Path, needed_bytes: int, expected: Estimate) -> str:
    """One line that tells what is needed and what is free; an error when that is too little."""
    free_bytes = shutil.disk_usage(folder).free
    parts = f"output {format_size(expected.output_bytes)}"
    if expected.temporary_bytes:
        parts += f", temporary files {format_size(expected.temporary_bytes)}"
    if needed_bytes > free_bytes:
        raise DataError(
            f"{folder}: the disk has {format_size(free_bytes)} free but rewriting needs about "
            f"{format_size(needed_bytes)} ({parts}); free some, write to another disk, or take fewer --columns"
        )
    return f"disk: needs about {format_size(needed_bytes)} ({parts}), has {format_size(free_bytes)}"
