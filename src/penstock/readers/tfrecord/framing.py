"""Records in files: the index that one pass over their headers makes, and where each begins in some bytes."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from penstock.config.errors import DataError
from penstock.readers.blocks import Int64Array
from penstock.readers.files import DataFile
from penstock.readers.text.record_index import CHUNK_BYTES, RecordIndex, kept_index
from penstock.readers.text.source import TextFile
from penstock.readers.tfrecord.locate import TORN, scan
from penstock.readers.tfrecord.problems import UnusableRecord, of_failure
from penstock.readers.tfrecord.wire import FOOTER_BYTES, HEADER_BYTES

_LEAST_RECORD_BYTES = HEADER_BYTES + FOOTER_BYTES
_MOST_RECORD_BYTES = 2**31 - 1
"""What protobuf allows, and what the places of features are counted in."""
_GZIP_MAGIC = b"\x1f\x8b"


def record_ends(content: bytes | memoryview) -> Int64Array:
    """The ends of the records that begin in the bytes; the last may lie outside of them, a header be cut off."""
    ends = np.empty(len(content) // _LEAST_RECORD_BYTES + 1, np.int64)
    failure = np.zeros(4, np.int64)
    num_records = scan(np.frombuffer(content, np.uint8), ends, failure)
    if num_records < 0:
        raise of_failure(failure.tolist(), [])
    return ends[:num_records]


@dataclass(frozen=True, slots=True)
class Records:
    """The framing of TFRecord files; their bytes have been indexed, so that all headers were whole once."""

    @property
    def name(self) -> str:
        """There is one way only."""
        return "tfrecord"

    def whole_records(self, text: bytes | memoryview, is_all: bool) -> tuple[int, int]:
        """Where the last whole record ends, and how many there are up to there."""
        ends = _known_ends(text)
        ends = ends[ends <= len(text)]
        last = int(ends[-1]) if ends.size else 0
        return len(text) if is_all else last, len(ends)

    def ends_inside(self, text: bytes | memoryview) -> bool:
        """Never: there are no quotes."""
        return False

    def starts(self, text: bytes | memoryview) -> Int64Array:
        """Where each record begins."""
        return np.insert(_known_ends(text)[:-1], 0, 0)


def _known_ends(text: bytes | memoryview) -> Int64Array:
    try:
        return record_ends(text)
    except UnusableRecord as bad:
        raise DataError(
            f"a file has changed while it was being read: a record has become bad: {bad.problem}"
        ) from bad


def index_files(files: Sequence[DataFile], index_dir: Path | None) -> tuple[RecordIndex, ...]:
    """Where the records of the files stand; indexes that were kept are used again."""
    return tuple(kept_index(file, Records().name, index_dir, partial(scan_file, file)) for file in files)


def scan_file(file: DataFile, checksum: int) -> RecordIndex:
    """Go from header to header through a file.

    A chunk has as many whole records as fit; a record that does not fit is one of its own, and is not read.
    """
    chunks: list[tuple[int, int, int]] = []
    offset = row = 0
    with closing(TextFile(file)) as source:
        while content := source.read(offset, CHUNK_BYTES):
            try:
                ends = record_ends(content)
                num_records, num_bytes = _whole_records(source, offset, content, ends)
            except UnusableRecord as bad:
                raise _explain(bad, file, source, offset, row) from bad
            chunks.append((offset, num_bytes, num_records))
            offset, row = offset + num_bytes, row + num_records
    table = np.array(chunks, np.int64).reshape(-1, 3)
    return RecordIndex(checksum, table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


def _whole_records(source: TextFile, offset: int, content: bytes, ends: Int64Array) -> tuple[int, int]:
    """How many records make the next chunk, and their bytes."""
    num_whole = int(np.searchsorted(ends, len(content), side="right"))
    is_end_of_file = len(content) < CHUNK_BYTES
    if num_whole and (not is_end_of_file or ends[num_whole - 1] == len(content)):
        return num_whole, int(ends[num_whole - 1])
    if is_end_of_file or not source.read(offset + int(ends[0]) - 1, 1):
        raise of_failure([TORN, num_whole, -1, 0], [])
    if ends[0] > _MOST_RECORD_BYTES:
        raise UnusableRecord(0, f"has {int(ends[0]):,} bytes; protobuf allows 2 GiB", is_frame=True)
    return 1, int(ends[0])


def _explain(bad: UnusableRecord, file: DataFile, source: TextFile, offset: int, row: int) -> DataError:
    """The problem with file, record and byte."""
    if row + bad.row == 0 and source.read(0, len(_GZIP_MAGIC)) == _GZIP_MAGIC:
        return DataError(f"{file.path}: is compressed with gzip; give it a name that ends with .gz")
    place = _end_of_records(source, offset, bad.row)
    return DataError(f"{file.path}: record {row + bad.row} at byte {place}: {bad.problem}")


def _end_of_records(source: TextFile, offset: int, num_records: int) -> int:
    """Where so many records end, all of one chunk, the first of which begins at an offset."""
    ends = np.zeros(num_records + 1, np.int64)
    scan(np.frombuffer(source.read(offset, CHUNK_BYTES), np.uint8), ends[1:], np.zeros(4, np.int64))
    return offset + int(ends[-1])


def offset_of(file: DataFile, index: RecordIndex, row: int) -> int:
    """The byte at which a record begins; for messages only, since it reads the file."""
    ends = np.cumsum(index.num_records)
    chunk = int(np.searchsorted(ends, row, side="right"))
    offset, num_before = int(index.offsets[chunk]), row - int(ends[chunk] - index.num_records[chunk])
    with closing(TextFile(file)) as source:
        return _end_of_records(source, offset, num_before)
