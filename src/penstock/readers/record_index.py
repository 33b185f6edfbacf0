"""Which records stand where in a file: found in one pass, and kept beside the run.

The index lists chunks of about 1 MiB of (decompressed) text that begin and end with a record, each with its offset,
its length and its number of records. So a run can go to any row, and knows how many there are.
"""

import hashlib
import json
import os
import uuid
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.files import COMPRESSIONS, DataFile
from penstock.readers.framing import Framing
from penstock.readers.order import Int64Array
from penstock.readers.scan import ends_checksum, fingerprint
from penstock.readers.storage import open_input

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some programs begin UTF-8 text with it."""
CHUNK_BYTES = MIB
MAX_RECORD_BYTES = 16 * MIB
MIN_KEPT_BYTES = 16 * MIB
"""Of a smaller file the index is not kept: it is made again in no time."""
_VERSION = 1

_SAMPLE_BYTES = 64 * KIB
_WHOLE_SAMPLE_BYTES = MIB
"""Files of up to this many bytes are sampled whole."""
_SAMPLES = 8
_COMPRESSED_STEP_CHUNKS = 16
_MAX_SAMPLED_FILES = 32


def codec_of(file: DataFile) -> str | None:
    """How a file is compressed; then it can only be read from its start."""
    return COMPRESSIONS.get(os.path.splitext(file.name.lower())[1])


class TextFile:
    """The decompressed content of one file.

    A plain file is read at any offset. A compressed one is decompressed from its start: reading on is cheap, and
    so is going back to where the last reading began; anything earlier starts over.
    """

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self._codec = codec_of(file)
        self._open()

    def _open(self) -> None:
        self._source: Any = open_input(self.file.path)
        if self._codec is not None:
            self._source = pa.CompressedInputStream(self._source, self._codec)  # type: ignore[arg-type]
        self._last_offset, self._last = 0, b""

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._source.close()

    def read(self, offset: int, num_bytes: int) -> bytes:
        """The text from an offset on; shorter than asked for only at its end."""
        try:
            if self._codec is None:
                plain: bytes = self._source.read_at(num_bytes, offset)
                return plain
            return self._decompress(offset, num_bytes)
        except OSError as error:
            raise DataError(f"{self.file.path}: cannot be read to its end, it is damaged: {error}") from error

    def _decompress(self, offset: int, num_bytes: int) -> bytes:
        if offset < self._last_offset:
            self.close()
            self._open()
        known = self._last[offset - self._last_offset :]
        if len(known) >= num_bytes:
            return known[:num_bytes]
        skip_bytes = offset - self._last_offset - len(self._last)
        self._last_offset, self._last = offset, b""
        while skip_bytes > 0 and (skipped := self._source.read(min(skip_bytes, MIB))):
            skip_bytes -= len(skipped)
        while len(known) < num_bytes and (more := self._source.read(num_bytes - len(known))):
            known += more
        self._last = known
        return known


class TextPiece(NamedTuple):
    """Whole records, and where they begin in the (decompressed) text."""

    offset: int
    text: memoryview
    num_records: int


def cut_records(
    text: TextFile, framing: Framing, start: int, end: int | None, sizes: tuple[int, int]
) -> Iterator[TextPiece]:
    """The text from `start` to `end` (None: all of it) in pieces that end with a record.

    `sizes`: how many bytes a piece has where records are short, and how many a record may have at most. The cuts
    depend on `start` and the sizes alone.
    """
    piece_bytes, max_bytes = sizes
    wanted_bytes = piece_bytes
    while end is None or start < end:
        left_bytes = wanted_bytes if end is None else min(wanted_bytes, end - start)
        content = text.read(start, left_bytes)
        is_last = len(content) < left_bytes or start + left_bytes == end
        length, num_records = framing.whole_records(content, is_last)
        if length:
            yield TextPiece(start, memoryview(content)[:length], num_records)
        if is_last:
            if framing.ends_inside(content):
                last = start + int(framing.starts(content)[-1])
                raise DataError(f"{text.file.path}: the record at byte {last} ends inside quotes; close them")
            return
        if length == 0 and wanted_bytes >= max_bytes:
            raise DataError(
                f"{text.file.path}: the record at byte {start} does not end within {format_size(max_bytes)}; "
                "is a quote unbalanced?"
            )
        wanted_bytes = piece_bytes if length else min(2 * wanted_bytes, max_bytes)
        start += length


@dataclass(frozen=True)
class RecordIndex:
    """Chunks of one file in its order; none is without records."""

    checksum: int
    """Of the first and the last bytes of the file."""
    offsets: Int64Array
    num_bytes: Int64Array
    num_records: Int64Array

    @classmethod
    def of(cls, checksum: int, chunks: Sequence[tuple[int, int, int]]) -> "RecordIndex":
        """From the offset, the bytes and the records of each chunk."""
        table = np.array(chunks, np.int64).reshape(-1, 3)
        return cls(checksum, table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())

    @property
    def total_records(self) -> int:
        return int(self.num_records.sum())


def index_records(file: DataFile, data_start: int, framing: Framing, index_dir: Path | None) -> RecordIndex:
    """The index of a file of text: as it was kept, or else made now and kept in `index_dir`; None keeps nothing."""
    form = f"{framing.name} from {data_start}"
    return kept_index(
        file, form, index_dir, lambda checksum: scan_records(file, data_start, framing, checksum)
    )


def scan_records(
    file: DataFile, data_start: int, framing: Framing, checksum: int, chunk_bytes: int = CHUNK_BYTES
) -> RecordIndex:
    """Go through the text once."""
    sizes = (chunk_bytes, max(chunk_bytes, MAX_RECORD_BYTES))
    with closing(TextFile(file)) as text:
        pieces = cut_records(text, framing, data_start, None, sizes)
        found = [(piece.offset, len(piece.text), piece.num_records) for piece in pieces if piece.num_records]
    return RecordIndex.of(checksum, found)


def kept_index(
    file: DataFile, form: str, index_dir: Path | None, scan: Callable[[int], RecordIndex]
) -> RecordIndex:
    """The index that `scan` makes of a file, given its checksum, kept in `index_dir`; None keeps nothing.

    `form` tells apart how the same file may be framed.
    """
    checksum = ends_checksum(file)
    if index_dir is None or file.size_bytes < MIN_KEPT_BYTES:
        return scan(checksum)
    # What the index follows from, and when the file was written, so that a change in its middle is noticed.
    changed_ns = os.stat(file.path).st_mtime_ns if os.path.exists(file.path) else None
    key = json.dumps([_VERSION, fingerprint(file, None, checksum), changed_ns, form, CHUNK_BYTES])
    path = index_dir / f"{file.name}.{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
    try:
        with np.load(path) as kept:
            if str(kept["key"]) == key:
                return RecordIndex(checksum, kept["offsets"], kept["num_bytes"], kept["num_records"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass  # there is none, or a torn one
    index = scan(checksum)
    columns = {"offsets": index.offsets, "num_bytes": index.num_bytes, "num_records": index.num_records}
    # Under another name first: other processes may be writing the same index.
    staging = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with staging.open("wb") as target:
            np.savez(target, key=np.array(key), **columns)  # type: ignore[arg-type]
        staging.replace(path)
    except OSError as error:
        raise DataError(
            f"{path}: the index of records cannot be written: {error.strerror or error}"
        ) from error
    return index


def sample_texts(
    files: Sequence[DataFile], indexes: Sequence[RecordIndex], framing: Framing
) -> Iterator[tuple[int, bytes]]:
    """Whole records, with the index of their file: all of small files, some parts of large ones."""
    step = -(-len(files) // _MAX_SAMPLED_FILES)
    for file_index in range(0, len(files), step):
        file, index = files[file_index], indexes[file_index]
        if not len(index.offsets):
            continue
        with closing(TextFile(file)) as source:
            if index.num_bytes.sum() <= _WHOLE_SAMPLE_BYTES:
                for offset, num_bytes in zip(index.offsets.tolist(), index.num_bytes.tolist(), strict=True):
                    yield file_index, source.read(offset, num_bytes)
                continue
            for chunk, start in _sampled_offsets(index, is_compressed=codec_of(file) is not None):
                text = source.read(int(index.offsets[chunk]), int(index.num_bytes[chunk]))
                yield file_index, _some_records(text, start, framing)


def _sampled_offsets(index: RecordIndex, is_compressed: bool) -> list[tuple[int, int]]:
    """Chunks, and bytes in them, evenly over a file from its start to its end."""
    if is_compressed:  # it is decompressed anyway: some chunks, and the end of the last
        last = len(index.offsets) - 1
        first_ones = [(chunk, 0) for chunk in range(0, last, _COMPRESSED_STEP_CHUNKS)]
        return [*first_ones, (last, max(0, int(index.num_bytes[last]) - _SAMPLE_BYTES))]
    ends = np.cumsum(index.num_bytes)
    at = np.linspace(0, ends[-1] - _SAMPLE_BYTES, _SAMPLES).astype(np.int64)
    chunks = np.searchsorted(ends, at, side="right")
    return list(zip(chunks.tolist(), (at - (ends - index.num_bytes)[chunks]).tolist(), strict=True))


def _some_records(text: bytes, start: int, framing: Framing) -> bytes:
    """About as many bytes as a sample has, from the first record after `start` on; at least one record."""
    starts = np.append(framing.starts(text), len(text))
    first = min(int(np.searchsorted(starts, start)), len(starts) - 2)
    end = int(np.searchsorted(starts, starts[first] + _SAMPLE_BYTES, side="right")) - 1
    return text[starts[first] : starts[max(end, first + 1)]]
