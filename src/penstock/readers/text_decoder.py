"""Indexed files -> record batches: the same for every format whose records an index lists.

A format adds a `Framing` (where records begin) and a `RecordParser` (records to columns, and what that takes).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, format_size
from penstock.readers.files import DataFile
from penstock.readers.framing import Framing
from penstock.readers.order import Blocks, Int64Array
from penstock.readers.reading import RollingLease
from penstock.readers.record_index import RecordIndex, TextFile, TextPiece, codec_of, cut_records
from penstock.readers.scan import BlockDecoder, Fingerprint, ScannedFiles, fingerprint
from penstock.runtime.budget import Share
from penstock.runtime.world import max_decode_threads

_COPIES = 2
"""Pieces that exist at once: one is parsed while views of the one before may still be in use."""
_MARGIN = 2
"""How much shorter than on average the records of a piece may be before it is cut again."""
_MAX_OPEN_FILES = 16
_MIN_PIECE_BYTES = 4 * KIB

Counts = TypeVar("Counts", int, Int64Array)


@dataclass(frozen=True, slots=True)
class ParseCost:
    """What parsing takes at most, text and columns together."""

    per_text_byte: int
    per_record: int

    def of(self, text_bytes: Counts, num_records: Counts) -> Counts:
        """Bytes for one text, or for each of many."""
        return self.per_text_byte * text_bytes + self.per_record * num_records


@dataclass(frozen=True, slots=True)
class BadRecord:
    """What is wrong with one record of a text."""

    problem: str
    record: int | None = None
    """Counted from 0 in the text."""
    column: str | None = None
    """None: nothing of the record can be read."""
    value: object = None

    def error(self, path: str, first_row: int) -> DataError:
        """With the row counted from the start of the file."""
        row = None if self.record is None else first_row + self.record
        return DataError.at(self.problem, file=path, row=row, column=self.column, value=self.value)


class RecordParser(Protocol):
    """Turns records into columns."""

    @property
    def columns(self) -> pa.Schema: ...

    @property
    def cost(self) -> ParseCost: ...

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        """So many records of a file; `first_row` is the row of the first of them in the file."""
        ...


@dataclass(frozen=True)
class ScannedText(ScannedFiles):
    """The chunks of the files, and how their records are read."""

    files: tuple[DataFile, ...]
    indexes: tuple[RecordIndex, ...]
    framing: Framing
    parser: RecordParser
    sampled_row_bytes: int
    """Of a row in memory, from samples all over the files."""
    text_row_bytes: int
    """Of a row as it stands in the files."""

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        pairs = zip(self.files, self.indexes, strict=True)
        return tuple(fingerprint(file, index.total_records, index.checksum) for file, index in pairs)

    @property
    def columns(self) -> pa.Schema:  # type: ignore[override]
        return self.parser.columns

    @property
    def row_bytes(self) -> int:
        return self.sampled_row_bytes

    @cached_property
    def chunks(self) -> tuple[tuple[int, range], ...]:
        """For each block its file, and which chunks of that file's index it has.

        A chunk of a plain file is a block. A compressed file is one: it cannot be entered in its middle, and
        blocks in any order would have to decompress it from its start again and again.
        """
        found: list[tuple[int, range]] = []
        for file_index, (file, index) in enumerate(zip(self.files, self.indexes, strict=True)):
            numbers = range(len(index.offsets))
            if codec_of(file) is not None and numbers:
                found.append((file_index, numbers))
            else:
                found += [(file_index, range(number, number + 1)) for number in numbers]
        return tuple(found)

    @cached_property
    def blocks(self) -> Blocks:
        rows: list[tuple[int, int, int]] = []
        last_file, row = -1, 0
        for file_index, numbers in self.chunks:
            row = row if file_index == last_file else 0
            num_rows = int(self.indexes[file_index].num_records[numbers.start : numbers.stop].sum())
            rows.append((file_index, row, num_rows))
            last_file, row = file_index, row + num_rows
        return Blocks.of(rows)

    @cached_property
    def min_bytes(self) -> int:
        """A few rows must fit a piece of a chunk."""
        text_bytes = max(_MIN_PIECE_BYTES, 2 * self.text_row_bytes)
        return _COPIES * self.parser.cost.of(text_bytes, text_bytes // self.text_row_bytes)

    @cached_property
    def ample_bytes(self) -> int:
        """Chunks are read whole, several at once."""
        return max(self._whole_chunk_bytes, max_decode_threads() * self.decoder_bytes)

    @cached_property
    def _whole_chunk_bytes(self) -> int:
        cost = self.parser.cost
        largest = [int(cost.of(index.num_bytes, index.num_records).max(initial=0)) for index in self.indexes]
        return max(self.min_bytes, _COPIES * max(largest))

    @cached_property
    def decoder_bytes(self) -> int:  # type: ignore[override]
        """A chunk that is read, and one that waits for its turn; a compressed file is read by one thread alone."""
        is_compressed = any(codec_of(file) is not None for file in self.files)
        return 0 if is_compressed else self._whole_chunk_bytes + self.block_bytes

    @cached_property
    def block_bytes(self) -> int:
        """The chunk with most records."""
        return self.row_bytes * max(int(index.num_records.max(initial=1)) for index in self.indexes)

    def decoder(self, share: Share) -> BlockDecoder:
        return TextDecoder(self, share)


class TextDecoder(BlockDecoder):
    """Open files, and the bytes of the piece of text in work and of the one before."""

    def __init__(self, scanned: ScannedText, share: Share) -> None:
        self._scanned = scanned
        self._cost = scanned.parser.cost
        self._share = share
        self._max_needed_bytes = share.limit_bytes // _COPIES
        self._lease = RollingLease(share)
        self._opened: dict[int, TextFile] = {}

    def close(self) -> None:
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """A batch for each chunk of a block, or for each piece of it where the share is small."""
        file_index, numbers = self._scanned.chunks[block]
        num_records = self._scanned.indexes[file_index].num_records
        row = int(num_records[: numbers.start].sum())
        first_row, end_row = row + first_row, row + end_row  # from here on all rows are those of the file
        for chunk in numbers:
            chunk_end = row + int(num_records[chunk])
            if row < end_row and chunk_end > first_row:
                yield from self._rows(file_index, chunk, row, first_row, end_row)
            row = chunk_end

    def _rows(
        self, file_index: int, chunk: int, row: int, first_row: int, end_row: int
    ) -> Iterator[pa.RecordBatch]:
        """The wanted rows of a chunk that begins at `row`."""
        for piece in self._pieces(file_index, chunk):
            start, row = row, row + piece.num_records
            if row <= first_row:
                continue
            first, end = max(first_row, start), min(end_row, row)
            needed_bytes = self._cost.of(len(piece.text), piece.num_records)
            self._lease.move_on(needed_bytes, retained_bytes=needed_bytes)
            text = piece.text
            if end - first < piece.num_records:
                starts = [*self._scanned.framing.starts(text).tolist(), len(text)]
                text = text[starts[first - start] : starts[end - start]]
            yield self._scanned.parser.parse(text, file_index, first, end - first)
            if row >= end_row:
                return

    def _pieces(self, file_index: int, chunk: int) -> Iterator[TextPiece]:
        """A chunk as one piece, or in smaller ones that take half of the share at most."""
        index, text = self._scanned.indexes[file_index], self._open(file_index)
        offset, num_bytes, num_records = (
            int(column[chunk]) for column in (index.offsets, index.num_bytes, index.num_records)
        )
        needed_bytes = self._cost.of(num_bytes, num_records)
        if needed_bytes <= self._max_needed_bytes:
            content = text.read(offset, num_bytes)
            num_bytes -= len(content)
            if num_bytes == 0:
                yield TextPiece(offset, memoryview(content), num_records)
                return
        else:
            sizes = max(1, num_bytes * self._max_needed_bytes // (_MARGIN * needed_bytes)), num_bytes
            for piece in cut_records(text, self._scanned.framing, offset, offset + num_bytes, sizes):
                num_records -= piece.num_records
                yield from self._fitting(piece, file_index)
        if num_records != 0:
            raise DataError(f"{text.file.path}: has changed while it was being read")

    def _fitting(self, piece: TextPiece, file_index: int) -> Iterator[TextPiece]:
        """A piece, in parts where its records are so short, or so long, that it would take too much."""
        needed_bytes = self._cost.of(len(piece.text), piece.num_records)
        if needed_bytes <= self._max_needed_bytes:
            yield piece
        elif piece.num_records == 1:
            raise BudgetExceeded(
                f"{self._scanned.files[file_index].path}: the record at byte {piece.offset} takes "
                f"{format_size(_COPIES * needed_bytes)} while it is read and handed on, but {self._share.name} may "
                f"hold {format_size(self._share.limit_bytes)}; raise {self._share.setting}, or shorten the record"
            )
        else:
            starts = self._scanned.framing.starts(piece.text)
            half = len(starts) // 2
            middle = int(starts[half])
            yield from self._fitting(TextPiece(piece.offset, piece.text[:middle], half), file_index)
            rest = TextPiece(piece.offset + middle, piece.text[middle:], len(starts) - half)
            yield from self._fitting(rest, file_index)

    def _open(self, file_index: int) -> TextFile:
        """A file's text; some stay open. What a compressed one holds is not small: it stays open alone."""
        opened = self._opened.pop(file_index, None)
        if opened is None:
            file = self._scanned.files[file_index]
            max_others = _MAX_OPEN_FILES - 1 if codec_of(file) is None else 0
            while len(self._opened) > max_others:
                self._opened.pop(next(iter(self._opened))).close()
            opened = TextFile(file)
        self._opened[file_index] = opened
        return opened
