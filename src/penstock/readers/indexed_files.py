"""Files whose records an index lists: the index itself, and how records become batches inside a share.

The index is found in one pass, and kept beside the run. It lists chunks of about 1 MiB of (decompressed) text that
begin and end with a record, each with its offset, its length and its number of records. So a run can go to any row, and
knows how many there are. A format adds its `Framing` (where records begin), and to `ScannedRecords` how records become
columns at which cost.
"""

import hashlib
import json
import os
import uuid
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.files import UTF8, DataFile
from penstock.readers.order import Blocks, Int64Array
from penstock.readers.scan import (
    BlockDecoder,
    Fingerprint,
    ReadSizes,
    RollingLease,
    ScannedFiles,
    ends_checksum,
)
from penstock.readers.stream import Quarantine, row_ids
from penstock.readers.text_file import TextFile
from penstock.runtime.budget import Share
from penstock.runtime.world import max_decode_threads

CHUNK_BYTES = MIB
MAX_RECORD_BYTES = 16 * MIB
MIN_KEPT_BYTES = 16 * MIB  # of a smaller file the index is not kept: it is made again in no time
_VERSION = 1
_SAMPLES, _SAMPLE_BYTES = 8, 64 * KIB
_WHOLE_SAMPLE_BYTES = MIB  # files of up to this many bytes are sampled whole
_MAX_SAMPLED_FILES = 32
Chunks = list[tuple[int, int, int]]  # the offset, the bytes and the records of each chunk of a file
_COPIES = 2  # parts that exist at once: one is parsed while views of the one before may still be in use
_MAX_OPEN_FILES = 16
_MIN_PART_BYTES = 4 * KIB
RECORD_SETTINGS = (
    "data_config.input_fields",
    "data_config.delimiter",
    "data_config.encoding",
    "data_config.decimal to ','",
)
"""What the problem of a record may name."""
HAS_CHANGED = "has changed while it was being read"
Counts = TypeVar("Counts", int, Int64Array)


# Framing.


class Framing(ABC):
    """How a format tells one record from the next; all texts begin where a record may begin."""

    name: str  # tells apart what would frame the same text differently

    @abstractmethod
    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        """Where the last record ends, and how many there are up to there; (0, 0): none ends in the text.

        The last record may lack its line end where the text is all there is.
        """

    @abstractmethod
    def starts(self, text: bytes | memoryview) -> Int64Array:
        """Where each record begins."""

    def ends_inside(self, text: bytes) -> bool:
        """Whether the text ends inside quotes, so that its last record is torn."""
        return False


def line_starts(ends: Int64Array, length: int) -> Int64Array:
    """Where lines that have a character begin, given their ends: not where another line ends at once."""
    starts = np.insert(ends + 1, 0, 0)
    return starts[starts < np.append(ends, length)]


# The index.


class RecordIndex(NamedTuple):
    """Chunks of one file in its order; none is without records."""

    checksum: int  # of the first and the last bytes of the file
    offsets: Int64Array
    num_bytes: Int64Array
    num_records: Int64Array

    @classmethod
    def of(cls, checksum: int, chunks: Chunks) -> "RecordIndex":
        return cls(checksum, *np.array(chunks, np.int64).reshape(-1, 3).T.copy())


def scan_text(file: DataFile, data_start: int, framing: Framing, chunk_bytes: int = CHUNK_BYTES) -> Chunks:
    """The text in chunks that end with a record: of about `chunk_bytes`, unless a single record is longer."""
    chunks: Chunks = []
    start, next_bytes, max_bytes = data_start, chunk_bytes, max(chunk_bytes, MAX_RECORD_BYTES)
    with closing(TextFile(file)) as text:
        while True:
            content = text.read(start, next_bytes)
            is_last = len(content) < next_bytes
            length, num_records = framing.whole_records(content, is_last)
            if num_records:
                chunks.append((start, length, num_records))
            if is_last:
                if framing.ends_inside(content):
                    last = start + int(framing.starts(content)[-1])
                    raise DataError(f"{file.path}: the record at byte {last} ends inside quotes; close them")
                return chunks
            if length == 0 and next_bytes >= max_bytes:
                size = format_size(max_bytes)
                raise DataError(
                    f"{file.path}: the record at byte {start} does not end within {size}; is a quote unbalanced?"
                )
            next_bytes = chunk_bytes if length else min(2 * next_bytes, max_bytes)
            start += length


def index_records(
    file: DataFile, form: str, index_dir: Path | None, scan: Callable[[], Chunks]
) -> RecordIndex:
    """What `scan` finds, kept in `index_dir` if there is one; `form` tells how the file is framed."""
    checksum = ends_checksum(file)
    if index_dir is None or file.size_bytes < MIN_KEPT_BYTES:
        return RecordIndex.of(checksum, scan())
    # What the index follows from, and when the file was written, so that a change in its middle is noticed.
    changed_ns = os.stat(file.path).st_mtime_ns if os.path.exists(file.path) else None
    key = json.dumps([_VERSION, (file.name, file.size_bytes, None, checksum), changed_ns, form, CHUNK_BYTES])
    path = index_dir / f"{file.name}.{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
    try:
        with np.load(path) as kept:
            if str(kept["key"]) == key:
                return RecordIndex(checksum, *(kept[name] for name in RecordIndex._fields[1:]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass  # there is none, or a torn one
    index = RecordIndex.of(checksum, scan())
    columns = {**index._asdict(), "key": np.array(key)}
    # Under another name first: other processes may be writing the same index.
    staging = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with staging.open("wb") as target:
            np.savez(target, **columns)
        staging.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"{path}: the index of records cannot be written: {reason}") from error
    return index


def index_text(
    files: Sequence[DataFile], data_starts: Iterable[int], framing: Framing, index_dir: Path | None
) -> tuple[RecordIndex, ...]:
    """The indexes of files of text, given where the first record of each begins."""
    indexes = []
    for file, start in zip(files, data_starts, strict=True):
        form = f"{framing.name} from {start}" + (f" as {file.encoding}" if file.encoding != UTF8 else "")
        indexes.append(index_records(file, form, index_dir, partial(scan_text, file, start, framing)))
    return tuple(indexes)


def sample_texts(
    files: Sequence[DataFile], indexes: Sequence[RecordIndex], framing: Framing
) -> Iterator[tuple[int, bytes]]:
    """Whole records, with the index of their file: all of small files, parts from all over large ones."""
    for file_index in range(0, len(files), -(-len(files) // _MAX_SAMPLED_FILES)):
        index = indexes[file_index]
        if not len(index.offsets):
            continue
        chunk_ends = np.cumsum(index.num_bytes)
        with closing(TextFile(files[file_index])) as source:
            if chunk_ends[-1] <= _WHOLE_SAMPLE_BYTES:
                for offset, num_bytes in zip(index.offsets.tolist(), index.num_bytes.tolist(), strict=True):
                    yield file_index, source.read(offset, num_bytes)
                continue
            for at in np.linspace(0, chunk_ends[-1] - _SAMPLE_BYTES, _SAMPLES).astype(np.int64):
                chunk = int(np.searchsorted(chunk_ends, at, side="right"))
                num_bytes = int(index.num_bytes[chunk])
                text = source.read(int(index.offsets[chunk]), num_bytes)
                starts = np.append(framing.starts(text), len(text))
                first = min(int(np.searchsorted(starts, at - chunk_ends[chunk] + num_bytes)), len(starts) - 2)
                end = int(np.searchsorted(starts, starts[first] + _SAMPLE_BYTES, side="right")) - 1
                yield file_index, text[starts[first] : starts[max(end, first + 1)]]


# Records as columns.


@dataclass(kw_only=True, eq=False)
class ScannedRecords(ScannedFiles):
    indexes: tuple[RecordIndex, ...]
    framing: Framing
    sampled_row_bytes: int  # of a row in memory, from samples all over the files
    text_row_bytes: int  # of a row as it stands in the files: the largest mean of a sampled part
    costs: tuple[int, int]
    """What parsing takes at most, text and columns together: for each byte of text, and for each record."""
    quarantine: Quarantine | None
    chunks: list[tuple[int, range]] = field(init=False, default_factory=list)
    """For each block its file, and which chunks of that file's index it has."""
    fingerprints: tuple[Fingerprint, ...] = field(init=False)
    blocks: Blocks = field(init=False)

    def __post_init__(self) -> None:
        marks: list[Fingerprint] = []
        rows: list[tuple[int, int, int]] = []
        for file_index, (file, index) in enumerate(zip(self.files, self.indexes, strict=True)):
            marks.append((file.name, file.size_bytes, int(index.num_records.sum()), index.checksum))
            # A chunk of a plain file is a block. A compressed or recoded file is one: it cannot be entered in its
            # middle, and blocks in any order would have to be read from its start again and again.
            numbers = range(len(index.offsets))
            step = max(1, len(numbers)) if file.is_sequential else 1
            first_row = 0
            for first in numbers[::step]:
                num_rows = int(index.num_records[first : first + step].sum())
                self.chunks.append((file_index, numbers[first : first + step]))
                rows.append((file_index, first_row, num_rows))
                first_row += num_rows
        self.fingerprints, self.blocks = tuple(marks), Blocks.of(rows)

    @cached_property
    def sizes(self) -> ReadSizes:
        # A few rows must fit a part of a chunk, beside its text.
        text_bytes = max(_MIN_PART_BYTES, 2 * self.text_row_bytes)
        part_bytes = self.parse_bytes(text_bytes, text_bytes // self.text_row_bytes)
        min_bytes = self.max_chunk_bytes * 4 // 3 + _COPIES * part_bytes
        block_bytes = self.row_bytes * max(int(index.num_records.max(initial=1)) for index in self.indexes)
        # Chunks are read whole, several at once: one that is read by each thread, and one that waits for its turn. A
        # compressed file is read by one thread alone.
        costs = [
            self.parse_bytes(index.num_bytes, index.num_records).max(initial=0) for index in self.indexes
        ]
        whole_bytes = max(min_bytes, self.max_chunk_bytes + _COPIES * int(max(costs)))
        is_sequential = any(file.is_sequential for file in self.files)
        decoder_bytes = 0 if is_sequential else whole_bytes + block_bytes
        ample_bytes = max(whole_bytes, max_decode_threads() * decoder_bytes)
        return ReadSizes(min_bytes, ample_bytes, block_bytes, decoder_bytes)

    @cached_property
    def max_chunk_bytes(self) -> int:
        return max(int(index.num_bytes.max(initial=0)) for index in self.indexes)

    def parse_bytes(self, text_bytes: Counts, num_records: Counts) -> Counts:
        """What parsing takes: for one text, or for each of many."""
        return self.costs[0] * text_bytes + self.costs[1] * num_records

    @abstractmethod
    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        """So many records of a file; `first_row` is the row of the first of them in the file."""

    def refuse(
        self,
        file_index: int,
        row: int,
        problem: str,
        *,
        column: str | None = None,
        value: object = None,
        content: str | None = None,
    ) -> None:
        """Put a record into the quarantine; where there is none, raise what is wrong with it."""
        if self.quarantine is None:
            raise DataError.at(
                problem,
                *RECORD_SETTINGS,
                file=self.files[file_index].path,
                row=row,
                column=column,
                value=value,
            )
        row_id = row_ids(file_index, row, 1)[0].as_py()
        self.quarantine.put(row_id, problem, column=column, value=value, row=content)

    @property
    def row_bytes(self) -> int:
        return self.sampled_row_bytes

    def decoder(self, share: Share) -> BlockDecoder:
        return RecordDecoder(self, share)


class RecordDecoder(BlockDecoder):
    def __init__(self, scanned: ScannedRecords, share: Share) -> None:
        self._scanned = scanned
        self._share = share
        self._lease = RollingLease(share, share.limit_bytes)
        self._opened: dict[int, TextFile] = {}

    def close(self) -> None:
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """A batch for each chunk of a block, or for each part of it where the share is small."""
        file_index, chunks = self._scanned.chunks[block]
        index = self._scanned.indexes[file_index]
        row = int(index.num_records[: chunks.start].sum())
        first_row, end_row = row + first_row, row + end_row  # from here on all rows are those of the file
        for chunk in chunks:
            num_records = int(index.num_records[chunk])
            first, end = max(first_row - row, 0), min(end_row - row, num_records)
            if first < end:
                offset, num_bytes = int(index.offsets[chunk]), int(index.num_bytes[chunk])
                text = memoryview(self._open(file_index).read(offset, num_bytes))
                if len(text) < num_bytes:
                    raise DataError(f"{self._scanned.files[file_index].path}: {HAS_CHANGED}")
                for start, stop, part in self._parts(text, offset, file_index, num_records, first, end):
                    part_bytes = self._scanned.parse_bytes(len(part), stop - start)
                    self._lease.move_on(part_bytes + num_bytes - len(part), part_bytes)
                    yield self._scanned.parse(part, file_index, row + start, stop - start)
            row += num_records

    def _parts(
        self, text: memoryview, offset: int, file_index: int, num_records: int, first: int, end: int
    ) -> Iterator[tuple[int, int, memoryview]]:
        """Records of a chunk in parts of which two fit the share beside its text: first record, end, and text."""
        parse_bytes, share = self._scanned.parse_bytes, self._share
        max_text_bytes = min(self._scanned.max_chunk_bytes, share.limit_bytes * 3 // 4)
        max_bytes = (share.limit_bytes - max_text_bytes) // _COPIES
        if end - first == num_records and parse_bytes(len(text), num_records) <= max_bytes:
            yield first, end, text
            return
        path = self._scanned.files[file_index].path
        starts = np.append(self._scanned.framing.starts(text), len(text))
        if len(starts) != num_records + 1:
            raise DataError(f"{path}: {HAS_CHANGED}")
        needed_bytes = parse_bytes(starts, np.arange(len(starts)))
        while first < end:
            limit_bytes = needed_bytes[first] + max_bytes
            stop = min(end, int(np.searchsorted(needed_bytes, limit_bytes, side="right")) - 1)
            if stop <= first or len(text) > max_text_bytes:
                record_bytes = len(text) + _COPIES * int(needed_bytes[first + 1] - needed_bytes[first])
                raise BudgetExceeded(
                    f"{path}: the record at byte {offset + int(starts[first])} takes {format_size(record_bytes)} "
                    f"while it is read and handed on, but {share.name} may hold "
                    f"{format_size(share.limit_bytes)}; raise {share.setting}, or shorten the record"
                )
            yield first, stop, text[starts[first] : starts[stop]]
            first = stop

    def _open(self, file_index: int) -> TextFile:
        """A file's text; some stay open. What a compressed one holds is not small: it stays open alone."""
        opened = self._opened.pop(file_index, None)
        if opened is None:
            file = self._scanned.files[file_index]
            max_others = 0 if file.is_sequential else _MAX_OPEN_FILES - 1
            while len(self._opened) > max_others:
                self._opened.pop(next(iter(self._opened))).close()
            opened = TextFile(file)
        self._opened[file_index] = opened
        return opened
