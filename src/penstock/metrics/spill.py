"""Rows of groups in bounded memory: beyond a byte limit they go to disk, parted by the hash of their group."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.features.hashes import mixed

Rows = NDArray[np.void]
"""Records of key, pred and target, without a gap between them."""

LIMIT_BYTES = 256 * MIB
"""About 20 million rows with a float32 prediction and a binary label."""
LEAST_LIMIT_BYTES = 8 * MIB
"""With less, what is written of a part at a time would be too little."""
ROW_BYTES = 24
"""Of a row at the most."""
NUM_PARTS = 256
"""Parts of many rows: one part of a set 256 times as large as the limit is as large as the limit."""
_BLOCK_ROWS = 1 << 18
"""Rows that are parted at a time, so that each of them is at hand in a processor's cache."""
_MAX_CHUNKS = 1024


def row_dtype(pred: Any, target: Any) -> np.dtype[np.void]:
    """The record of a row with columns of these types."""
    return np.dtype([("key", np.uint64), ("pred", pred), ("target", target)])


_NO_ROWS: Rows = np.empty(0, row_dtype(np.float32, np.bool_))


def rows_of(keys: NDArray[Any], preds: NDArray[Any], target: NDArray[Any]) -> Rows:
    """Columns as records."""
    rows = np.empty(len(keys), row_dtype(preds.dtype, target.dtype))
    rows["key"], rows["pred"], rows["target"] = keys, preds, target
    return rows


def working_bytes(num_rows: int) -> int:
    """What parting a block of rows, or the value of one part, takes for a moment."""
    return min(96 * num_rows, max(16 * MIB, num_rows // 2))


class _Block(NamedTuple):
    """Rows in the order of their parts, and where each part begins, with the end after the last."""

    rows: Rows
    bounds: list[int]

    def part(self, number: int) -> Rows:
        return self.rows[self.bounds[number] : self.bounds[number + 1]]


class GroupRows:
    """Rows in memory up to `limit_bytes`, then in temporary files that last as long as the rows are needed.

    All rows of a group are in one part, so that one part at a time answers for its groups.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None) -> None:
        """Temporary files go to `folder`, or where the system keeps them (TMPDIR)."""
        self.limit_bytes, self._parent = limit_bytes, folder
        self._spilled: tempfile.TemporaryDirectory[str] | None = None
        self._dtypes: list[np.dtype[np.void]] = []  # of spilled rows; a file holds records of one kind
        self._loose: list[Rows] = []
        self._blocks: list[_Block] = []
        self.num_rows = self._num_loose = self._held_bytes = self._spilled_bytes = 0

    def add(self, rows: Rows) -> None:
        """Keep rows; the array must not be changed afterwards."""
        if not len(rows):
            return
        self._loose.append(rows)
        self.num_rows += len(rows)
        self._num_loose += len(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes > self.limit_bytes:
            self._spill()
        elif self._num_loose >= _BLOCK_ROWS:
            self._part_loose()
        elif len(self._loose) > _MAX_CHUNKS:
            self._loose = [np.concatenate(self._loose)]

    def parts(self) -> Iterator[Rows]:
        """All rows, part by part."""
        blocks = [*self._blocks, *([_parted(np.concatenate(self._loose))] if self._loose else [])]
        for number in range(NUM_PARTS):
            found = [block.part(number) for block in blocks]
            found += [np.fromfile(file, dtype) for file, dtype in self._files(number) if file.exists()]
            yield np.concatenate(found) if found else _NO_ROWS

    def whole(self) -> Rows:
        """All rows at once."""
        if self._blocks or self.is_spilled:
            return np.concatenate(list(self.parts()))
        return np.concatenate(self._loose) if self._loose else _NO_ROWS

    def whole_or_parts(self) -> Iterable[Rows]:
        """All rows at once while they are few, part by part when they are many."""
        return self.parts() if self._blocks or self.is_spilled else [self.whole()]

    @property
    def is_spilled(self) -> bool:
        """Whether there are rows on disk."""
        return self._spilled is not None

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows in memory."""
        return self._held_bytes

    @property
    def num_bytes(self) -> int:
        """Bytes of all rows, in memory and on disk."""
        return self._spilled_bytes + self._held_bytes

    def clear(self) -> None:
        """Forget all rows and remove the files."""
        if self._spilled is not None:
            self._spilled.cleanup()
        self._spilled = None
        self._dtypes, self._loose, self._blocks = [], [], []
        self.num_rows = self._num_loose = self._held_bytes = self._spilled_bytes = 0

    def without_rows(self) -> "GroupRows":
        """Another with the same limit, empty."""
        return GroupRows(self.limit_bytes, self._parent)

    def __deepcopy__(self, memo: dict[int, Any]) -> "GroupRows":
        """The same rows in files of its own."""
        other = self.without_rows()
        for rows in self.whole_or_parts():
            other.add(rows)
        return other

    def _part_loose(self) -> None:
        if self._loose:
            self._blocks.append(_parted(np.concatenate(self._loose)))
            self._loose, self._num_loose = [], 0

    def _spill(self) -> None:
        self._part_loose()
        if self._spilled is None:
            self._spilled = tempfile.TemporaryDirectory(prefix="penstock-groups-", dir=self._parent)
        self._dtypes += {block.rows.dtype for block in self._blocks} - set(self._dtypes)
        try:
            for number in range(NUM_PARTS):
                self._append(number)
        except OSError as error:
            raise BudgetExceeded(
                f"{self._spilled.name}: {format_size(self.num_bytes)} of grouped rows do not fit there ({error}); "
                "set TMPDIR to a folder with room"
            ) from error
        self._spilled_bytes += self._held_bytes
        self._blocks, self._held_bytes = [], 0

    def _append(self, number: int) -> None:
        """Write one part of the blocks behind what its files have."""
        for path, dtype in self._files(number):
            content = b"".join(
                block.part(number).tobytes() for block in self._blocks if block.rows.dtype == dtype
            )
            if content:
                with path.open("ab") as file:
                    file.write(content)

    def _files(self, number: int) -> list[tuple[Path, np.dtype[np.void]]]:
        """The files of a part, and the records that each has."""
        if self._spilled is None:
            return []
        folder = Path(self._spilled.name)
        return [(folder / f"{number:03d}-{kind}", dtype) for kind, dtype in enumerate(self._dtypes)]


def _parted(rows: Rows) -> _Block:
    """By the highest bits of the hash of their key."""
    shift = np.uint64(65 - NUM_PARTS.bit_length())
    return _sorted_by((mixed(np.array(rows["key"])) >> shift).astype(np.uint8), rows, NUM_PARTS)


def by_rank(rows: Rows, num_ranks: int) -> list[Rows]:
    """The rows that each rank answers for; by other bits of the hash than the parts."""
    hashes = mixed(np.array(rows["key"])) & np.uint64(0xFFFFFFFF)
    block = _sorted_by((hashes % np.uint64(num_ranks)).astype(np.int64), rows, num_ranks)
    return [block.part(rank) for rank in range(num_ranks)]


def _sorted_by(numbers: NDArray[Any], rows: Rows, num_parts: int) -> _Block:
    order = np.argsort(numbers, kind="stable")
    begins = np.searchsorted(numbers, np.arange(num_parts, dtype=numbers.dtype), sorter=order)
    return _Block(rows.take(order), [*begins.tolist(), len(rows)])
