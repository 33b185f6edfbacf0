"""Rows that metrics keep until the value is computed: in memory up to a limit in bytes, then in temporary files."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.readers.hashes import mixed

Rows = NDArray[np.void]
"""Records of key, pred and target, without a gap between them."""

LIMIT_BYTES = 256 * MIB
"""About 20 million rows with a float32 prediction and a binary label."""
MIN_LIMIT_BYTES = 8 * MIB
"""With less, what is written of a part at a time would be too little."""
MAX_ROW_BYTES = 24
NUM_PARTS = 256
"""Parts of many rows: one part of a set 256 times as large as the limit is as large as the limit."""
_BLOCK_ROWS = 1 << 18
"""Rows that are parted at a time, so that they stay in a processor's cache."""
_MAX_CHUNKS = 1024


class Spool:
    """Files of records in a temporary folder, which goes with `clear`, or when the spool is no longer used."""

    def __init__(self, content: str, folder: Path | None = None) -> None:
        """`content` names the records in errors. The files go under `folder`, or where the system says (TMPDIR)."""
        self._content, self.folder = content, folder
        self._files: tempfile.TemporaryDirectory[str] | None = None
        self.num_bytes = 0

    def append(self, name: str, *parts: NDArray[np.void]) -> None:
        num_bytes = sum(part.nbytes for part in parts)
        if not num_bytes:
            return
        if self._files is None:
            self._files = tempfile.TemporaryDirectory(prefix="penstock-metrics-", dir=self.folder)
        try:
            with Path(self._files.name, name).open("ab") as file:
                file.write(b"".join(part.tobytes() for part in parts))
        except OSError as error:
            raise BudgetExceeded(
                f"{self._files.name}: {format_size(self.num_bytes + num_bytes)} of {self._content} do not fit there "
                f"({error}); set TMPDIR to a folder with more space"
            ) from error
        self.num_bytes += num_bytes

    def read(self, name: str, dtype: np.dtype[np.void], start: int = 0, count: int = -1) -> NDArray[np.void]:
        """So many records from `start` on, as far as there are any; read, since mapped pages stay in memory."""
        path = Path(self._files.name, name) if self._files else None
        if path is None or not path.exists():
            return np.empty(0, dtype)
        return np.fromfile(path, dtype, count, offset=start * dtype.itemsize)

    def clear(self) -> None:
        if self._files is not None:
            self._files.cleanup()
        self._files, self.num_bytes = None, 0


def row_dtype(pred: Any, target: Any) -> np.dtype[np.void]:
    return np.dtype([("key", np.uint64), ("pred", pred), ("target", target)])


_NO_ROWS: Rows = np.empty(0, row_dtype(np.float32, np.bool_))


def rows_of(keys: NDArray[Any], preds: NDArray[Any], target: NDArray[Any]) -> Rows:
    rows = np.empty(len(keys), row_dtype(preds.dtype, target.dtype))
    rows["key"], rows["pred"], rows["target"] = keys, preds, target
    return rows


def working_bytes(num_rows: int) -> int:
    """What parting a block of rows, or computing the value of one part, takes for a moment."""
    return min(96 * num_rows, max(16 * MIB, num_rows // 2))


class _Block(NamedTuple):
    """Rows in the order of their parts, and where each part begins, with the end after the last."""

    rows: Rows
    bounds: list[int]

    def part(self, number: int) -> Rows:
        return self.rows[self.bounds[number] : self.bounds[number + 1]]


class GroupRows:
    """Rows in memory up to `limit_bytes`, then in files, parted by the hash of their group.

    All rows of a group are in one part, so that the value of its groups needs one part at a time.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None) -> None:
        self.limit_bytes = limit_bytes
        self._spool = Spool("grouped rows", folder)
        self._forget()

    def _forget(self) -> None:
        self._dtypes: list[np.dtype[np.void]] = []  # of spooled rows; a file holds records of one kind
        self._loose: list[Rows] = []
        self._blocks: list[_Block] = []
        self.num_rows = self._num_loose = self.held_bytes = 0

    def add(self, rows: Rows) -> None:
        """Keep rows; the array must not be changed afterwards."""
        if not len(rows):
            return
        self._loose.append(rows)
        self.num_rows += len(rows)
        self._num_loose += len(rows)
        self.held_bytes += rows.nbytes
        if self.held_bytes > self.limit_bytes:
            self._spill()
        elif self._num_loose >= _BLOCK_ROWS:
            self._part_loose()
        elif len(self._loose) > _MAX_CHUNKS:
            self._loose = [np.concatenate(self._loose)]

    def parts(self) -> Iterator[Rows]:
        blocks = [*self._blocks, *([_parted(_concatenated(self._loose))] if self._loose else [])]
        for number in range(NUM_PARTS):
            found = [block.part(number) for block in blocks]
            found += [self._spool.read(name, dtype) for name, dtype in self._files(number)]
            yield _concatenated(found)

    def whole(self) -> Rows:
        if self._blocks or self.is_spilled:
            return np.concatenate(list(self.parts()))
        return np.concatenate(self._loose) if self._loose else _NO_ROWS

    def whole_or_parts(self) -> Iterable[Rows]:
        """All rows at once while they are few, part by part when they are many."""
        return self.parts() if self._blocks or self.is_spilled else [self.whole()]

    @property
    def is_spilled(self) -> bool:
        return self._spool.num_bytes > 0

    @property
    def num_bytes(self) -> int:
        return self._spool.num_bytes + self.held_bytes

    def clear(self) -> None:
        self._spool.clear()
        self._forget()

    def without_rows(self) -> "GroupRows":
        return GroupRows(self.limit_bytes, self._spool.folder)

    def __deepcopy__(self, memo: dict[int, Any]) -> "GroupRows":
        other = self.without_rows()
        for rows in self.whole_or_parts():
            other.add(rows)
        return other

    def _part_loose(self) -> None:
        if self._loose:
            self._blocks.append(_parted(_concatenated(self._loose)))
            self._loose, self._num_loose = [], 0

    def _spill(self) -> None:
        self._part_loose()
        self._dtypes += {block.rows.dtype for block in self._blocks} - set(self._dtypes)
        for number in range(NUM_PARTS):
            for name, dtype in self._files(number):
                parts = [block.part(number) for block in self._blocks if block.rows.dtype == dtype]
                self._spool.append(name, *parts)
        self._blocks, self.held_bytes = [], 0

    def _files(self, number: int) -> list[tuple[str, np.dtype[np.void]]]:
        return [(f"{number:03d}-{kind}", dtype) for kind, dtype in enumerate(self._dtypes)]


def _concatenated(chunks: list[Rows]) -> Rows:
    """As plain bytes where all records are of one kind: NumPy compares and copies records field by field."""
    if not chunks:
        return _NO_ROWS
    dtype = chunks[0].dtype
    if any(chunk.dtype != dtype for chunk in chunks):
        return np.concatenate(chunks)
    return np.concatenate([chunk.view(f"V{dtype.itemsize}") for chunk in chunks]).view(dtype)


def _parted(rows: Rows) -> _Block:
    """By the highest bits of the hash of their key."""
    shift = np.uint64(65 - NUM_PARTS.bit_length())
    return _sorted_by((mixed(np.array(rows["key"])) >> shift).astype(np.uint8), rows, NUM_PARTS)


def by_rank(rows: Rows, num_ranks: int) -> list[Rows]:
    """The rows that each rank computes; by other bits of the hash than the parts."""
    hashes = mixed(np.array(rows["key"])) & np.uint64(0xFFFFFFFF)
    block = _sorted_by((hashes % np.uint64(num_ranks)).astype(np.int64), rows, num_ranks)
    return [block.part(rank) for rank in range(num_ranks)]


def _sorted_by(numbers: NDArray[Any], rows: Rows, num_parts: int) -> _Block:
    order = np.argsort(numbers, kind="stable")
    begins = np.searchsorted(numbers, np.arange(num_parts, dtype=numbers.dtype), sorter=order)
    return _Block(rows.take(order), [*begins.tolist(), len(rows)])
