"""Which records stand where in a file: found in one pass, and kept beside the run.

The index lists chunks of about 1 MiB of (decompressed) text that begin and end with a record, each with its offset,
its length and its number of records. So a run can go to any row, and knows how many there are. What tells one record
from the next is the framing of a format.
"""

import hashlib
import json
import os
import re
import uuid
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.files import COMPRESSIONS, DataFile
from penstock.readers.order import Int64Array
from penstock.readers.scan import ends_checksum
from penstock.readers.storage import open_input

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some programs begin UTF-8 text with it
CHUNK_BYTES = MIB
MAX_RECORD_BYTES = 16 * MIB
MIN_KEPT_BYTES = 16 * MIB  # of a smaller file the index is not kept: it is made again in no time
_VERSION = 1
_SAMPLES, _SAMPLE_BYTES = 8, 64 * KIB
_WHOLE_SAMPLE_BYTES = MIB  # files of up to this many bytes are sampled whole
_MAX_SAMPLED_FILES = 32
_WINDOW_BYTES = 64 * KIB
Chunks = list[tuple[int, int, int]]  # the offset, the bytes and the records of each chunk of a file
_QUOTE, _LINE_FEED, _RETURN, _BRACE, _SPACE = b'"\n\r{ '


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


def codec_of(file: DataFile) -> str | None:
    """How a file is compressed; then it can only be read from its start."""
    return COMPRESSIONS.get(os.path.splitext(file.name.lower())[1])


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


class Lines(Framing):
    """Records that are lines, as in JSON lines: not those of nothing but spaces."""

    name = "lines"

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        end = len(text) if is_all else text.rfind(b"\n") + 1
        return end, len(self.starts(memoryview(text)[:end]))

    def starts(self, text: bytes | memoryview) -> Int64Array:
        characters = np.frombuffer(text, np.uint8)
        starts = _starts(np.flatnonzero(characters == _LINE_FEED), len(characters))
        if (characters[starts] == _BRACE).all():
            return starts
        visible = np.flatnonzero(characters > _SPACE)
        first_visible = np.append(visible, len(characters))[np.searchsorted(visible, starts)]
        return starts[first_visible < np.append(starts, len(characters))[1:]]


class CsvRecords(Framing):
    """Records of CSV end at a line end that is not inside quotes, and lines without any character are none.

    A quote opens a quoted cell only where a cell begins; inside an unquoted cell, as in `5" disk`, it is a character
    like any other. That is how Arrow reads it.
    """

    def __init__(self, delimiter: str) -> None:
        self.name = f"csv{delimiter}"
        boundary = delimiter.encode("latin-1") + b"\r\n"
        # A quote at the start of a cell, up to the quote that closes it or to the end.
        self._quoted_cell = re.compile(rb'(?<![^%s])"[^"]*(?:""[^"]*)*(?:"|\Z)' % re.escape(boundary))
        self._is_boundary = np.zeros(256, np.bool_)
        self._is_boundary[list(boundary + b'"')] = True

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        r"""As `Framing` says.

        >>> CsvRecords(",").whole_records(b'1,2\n3,"a\nb', is_all=False)
        (4, 1)
        """
        characters = np.frombuffer(text, np.uint8)
        if b'"' in text:
            ends = self._line_ends(characters)
            end = len(text) if is_all else int(np.append(-1, ends)[-1]) + 1
            return end, len(_starts(ends, end))
        end = len(text) if is_all else text.rfind(b"\n") + 1
        num_records = 0
        for at in range(0, end, _WINDOW_BYTES):  # in windows that stay in the processor's cache
            window = characters[at : min(end, at + _WINDOW_BYTES + 1)]
            is_end = window == _LINE_FEED
            if b"\r" in text:
                is_end |= window == _RETURN
            # A record begins where a character follows a line end.
            num_records += int(np.count_nonzero(is_end[:-1] > is_end[1:])) + (at == 0 and not is_end[0])
        return end, num_records

    def starts(self, text: bytes | memoryview) -> Int64Array:
        return _starts(self._line_ends(np.frombuffer(text, np.uint8)), len(text))

    def ends_inside(self, text: bytes) -> bool:
        """As `Framing` says: a line end after the text would be a part of its last cell."""
        if b'"' not in text:
            return False
        ends = self._line_ends(np.frombuffer(text + b"\n", np.uint8))
        return not ends.size or int(ends[-1]) < len(text)

    def _line_ends(self, characters: NDArray[np.uint8]) -> Int64Array:
        ends: Int64Array = np.flatnonzero((characters == _LINE_FEED) | (characters == _RETURN))
        quotes: Int64Array = np.flatnonzero(characters == _QUOTE)
        if not quotes.size:
            return ends
        # Where every quote opens a cell, closes one or is doubled, counting them tells what is inside.
        before_opening, after_closing = quotes[::2] - 1, quotes[1::2] + 1
        before_opening = before_opening[before_opening >= 0]
        after_closing = after_closing[after_closing < len(characters)]
        beside = characters[np.concatenate([before_opening, after_closing])]
        if not self._is_boundary[beside].all():
            cells = [cell.span() for cell in self._quoted_cell.finditer(characters.data)]
            quotes = np.array(cells, np.int64).reshape(-1)
        outside: Int64Array = ends[np.searchsorted(quotes, ends, side="right") % 2 == 0]
        return outside


def _starts(ends: Int64Array, length: int) -> Int64Array:
    """Where lines that have a character begin, given their ends: not where another line ends at once."""
    starts = np.insert(ends + 1, 0, 0)
    return starts[starts < np.append(ends, length)]


# The index.


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
    next_bytes = piece_bytes
    while end is None or start < end:
        left_bytes = next_bytes if end is None else min(next_bytes, end - start)
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
        if length == 0 and next_bytes >= max_bytes:
            raise DataError(
                f"{text.file.path}: the record at byte {start} does not end within {format_size(max_bytes)}; "
                "is a quote unbalanced?"
            )
        next_bytes = piece_bytes if length else min(2 * next_bytes, max_bytes)
        start += length


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
    sizes = (chunk_bytes, max(chunk_bytes, MAX_RECORD_BYTES))
    with closing(TextFile(file)) as text:
        pieces = cut_records(text, framing, data_start, None, sizes)
        return [(piece.offset, len(piece.text), piece.num_records) for piece in pieces if piece.num_records]


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
    return tuple(
        index_records(
            file, f"{framing.name} from {start}", index_dir, partial(scan_text, file, start, framing)
        )
        for file, start in zip(files, data_starts, strict=True)
    )


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
