"""Rows of groups in bounded memory: beyond a byte limit they go to disk, parted by the hash of their group."""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.prep.profile.hashes import mixed

Rows = NDArray[np.void]
"""Records of key, pred and target, without a gap between them."""

LIMIT_BYTES = 256 * MIB
"""About 20 million rows with a float32 prediction and a binary label."""
NUM_PARTS = 256
"""Files of spilled rows: a part of a set 256 times as large as the limit is as large as the limit."""
_MAX_CHUNKS = 1024
_HASHED_ROWS = 1 << 15
"""Hashed at a time: what is held beside them fits a processor's cache."""


def row_dtype(pred: Any, target: Any) -> np.dtype[np.void]:
    """The record of a row with columns of these types."""
    return np.dtype([("key", np.uint64), ("pred", pred), ("target", target)])


_NO_ROWS: Rows = np.empty(0, row_dtype(np.float32, np.bool_))


def rows_of(keys: NDArray[Any], preds: NDArray[Any], target: NDArray[Any]) -> Rows:
    """Columns as records."""
    rows = np.empty(len(keys), row_dtype(preds.dtype, target.dtype))
    rows["key"], rows["pred"], rows["target"] = keys, preds, target
    return rows


class GroupRows:
    """Rows in memory up to `limit_bytes`, then in temporary files that last as long as the rows are needed.

    All rows of a group are in one part, so that one part at a time answers for its groups.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None) -> None:
        """Temporary files go to `folder`, or where the system keeps them (TMPDIR)."""
        self.limit_bytes, self._parent = limit_bytes, folder
        self._spilled: tempfile.TemporaryDirectory[str] | None = None
        self._chunks: list[Rows] = []
        self._dtypes: list[np.dtype[np.void]] = []  # of spilled rows; a file holds records of one kind
        self.num_rows = self._held_bytes = self._spilled_bytes = 0

    def add(self, rows: Rows) -> None:
        """Keep rows; the array must not be changed afterwards."""
        if not len(rows):
            return
        self._chunks.append(rows)
        self.num_rows += len(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes > self.limit_bytes:
            self._spill()
        elif len(self._chunks) > _MAX_CHUNKS:
            self._chunks = [np.concatenate(self._chunks)]

    def parts(self, num_parts: int | None = None) -> Iterator[Rows]:
        """All rows, part by part; `num_parts` is a power of two up to 256, and given only when all are in memory."""
        if self._spilled is None:
            yield from _parted(self._held(), num_parts or self._fitting_parts())
            return
        self._spill()
        for part in range(NUM_PARTS):
            yield self._read(part)

    @property
    def is_spilled(self) -> bool:
        """Whether there are rows on disk."""
        return self._spilled is not None

    @property
    def num_bytes(self) -> int:
        """Bytes of all rows, in memory and on disk."""
        return self._spilled_bytes + self._held_bytes

    def clear(self) -> None:
        """Forget all rows and remove the files."""
        if self._spilled is not None:
            self._spilled.cleanup()
        self._spilled = None
        self._chunks, self._dtypes = [], []
        self.num_rows = self._held_bytes = self._spilled_bytes = 0

    def without_rows(self) -> "GroupRows":
        """Another with the same limit, empty."""
        return GroupRows(self.limit_bytes, self._parent)

    def __deepcopy__(self, memo: dict[int, Any]) -> "GroupRows":
        """The same rows in files of its own."""
        other = self.without_rows()
        for rows in self.parts():
            other.add(rows)
        return other

    def _held(self) -> Rows:
        if len(self._chunks) != 1:
            self._chunks = [np.concatenate(self._chunks) if self._chunks else _NO_ROWS]
        return self._chunks[0]

    def _fitting_parts(self) -> int:
        """So many, up to all, that what is held beside a part while it is sorted fits a processor's cache."""
        return min(NUM_PARTS, 1 << (self.num_rows >> 16).bit_length())

    def _spill(self) -> None:
        if not self._held_bytes:
            return
        rows = self._held()
        if self._spilled is None:
            self._spilled = tempfile.TemporaryDirectory(prefix="penstock-groups-", dir=self._parent)
        if rows.dtype not in self._dtypes:
            self._dtypes.append(rows.dtype)
        try:
            for part, members in enumerate(_parted(rows, NUM_PARTS)):
                if len(members):
                    with self._file(part, rows.dtype).open("ab") as file:
                        file.write(members.tobytes())
        except OSError as error:
            raise BudgetExceeded(
                f"{self._spilled.name}: {format_size(self.num_bytes)} of grouped rows do not fit there ({error}); "
                "set TMPDIR to a folder with room"
            ) from error
        self._spilled_bytes += self._held_bytes
        self._chunks, self._held_bytes = [], 0

    def _read(self, part: int) -> Rows:
        found = [
            np.fromfile(file, dtype) for dtype in self._dtypes if (file := self._file(part, dtype)).exists()
        ]
        return np.concatenate(found) if found else _NO_ROWS

    def _file(self, part: int, dtype: np.dtype[np.void]) -> Path:
        assert self._spilled is not None
        return Path(self._spilled.name) / f"{part:03d}-{self._dtypes.index(dtype)}"


def _parted(rows: Rows, num_parts: int) -> Iterator[Rows]:
    """The rows of each part, by the highest bits of the hash of their key."""
    if num_parts == 1:
        yield rows
        return
    shift = np.uint64(65 - num_parts.bit_length())
    part_of = np.empty(len(rows), np.uint8)
    for begin in range(0, len(rows), _HASHED_ROWS):
        window = slice(begin, begin + _HASHED_ROWS)
        part_of[window] = mixed(np.array(rows["key"][window])) >> shift
    yield from _split(rows, part_of, num_parts)


def by_rank(rows: Rows, num_ranks: int) -> Sequence[Rows]:
    """The rows that each rank answers for; by other bits of the hash than the parts."""
    hashes = mixed(np.array(rows["key"])) & np.uint64(0xFFFFFFFF)
    return list(_split(rows, (hashes % np.uint64(num_ranks)).astype(np.int64), num_ranks))


def _split(rows: Rows, part_of: NDArray[Any], num_parts: int) -> Iterator[Rows]:
    """The rows of part 0, of part 1, and so on, each in their order."""
    order = np.argsort(part_of, kind="stable")
    begins = np.searchsorted(part_of, np.arange(num_parts, dtype=part_of.dtype), sorter=order)
    for begin, end in pairwise([*begins.tolist(), len(rows)]):
        yield rows.take(order[begin:end])
