"""Row groups of files in object stores are fetched whole, as stored, where that fits the share.

Decoding looks at every page and may go over a row group several times: in memory that costs nothing, in a store each
look is a request. A row group that is too large for that is read through the windows of `remote_file.py`.
"""

from collections.abc import Callable, Sequence

from penstock.config.sizes import MIB
from penstock.readers.files import DataFile
from penstock.readers.parquet.layout import RowGroup
from penstock.readers.parquet.plan import least_bytes
from penstock.readers.uris import is_uri
from penstock.runtime.budget import Share

_MOST_FETCHED_BYTES = 64 * MIB
"""A larger row group, as stored, is read as fast in parts."""
_DECODING_SLACK = 4
"""What decoding needs at least stays free for it, and one of so many parts more."""


def most_held_bytes(blocks: Sequence[RowGroup], files: Sequence[DataFile], limit_bytes: int) -> int:
    """Row groups of stores up to this size are fetched whole; 0: none."""
    if not any(is_uri(file.path) for file in files):
        return 0
    decoding_bytes = least_bytes(blocks)
    room_bytes = limit_bytes - decoding_bytes - decoding_bytes // _DECODING_SLACK
    return _largest_stored(blocks, files, min(room_bytes, _MOST_FETCHED_BYTES))


def ample_held_bytes(blocks: Sequence[RowGroup], files: Sequence[DataFile]) -> int:
    """What fetching takes beside decoding, with as much memory as one likes."""
    return _largest_stored(blocks, files, _MOST_FETCHED_BYTES)


def _largest_stored(blocks: Sequence[RowGroup], files: Sequence[DataFile], most_bytes: int) -> int:
    stored = (block.stored_bytes for block in blocks if is_uri(files[block.file_index].path))
    return max((num_bytes for num_bytes in stored if num_bytes <= most_bytes), default=0)


class RestOfShare(Share):
    """What is left of a share while some of it is held all the time."""

    def __init__(self, whole: Share, held_bytes: int) -> None:
        super().__init__(whole.name, whole.limit_bytes - held_bytes, whole.setting)
        self._whole = whole

    def acquire(self, num_bytes: int, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Take bytes of the whole."""
        return self._whole.acquire(num_bytes, give_up)

    def release(self, num_bytes: int) -> None:
        """Give them back to the whole."""
        self._whole.release(num_bytes)
