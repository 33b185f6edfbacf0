"""Chunks of text -> record batches, inside the reader's share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import format_size
from penstock.readers.files import DataFile
from penstock.readers.leasing import RollingLease
from penstock.readers.survey import BlockDecoder
from penstock.readers.text.framing import Framing
from penstock.readers.text.parsing import RecordParser
from penstock.readers.text.pieces import TextPiece, cut_records
from penstock.readers.text.record_index import RecordIndex
from penstock.readers.text.source import TextFile, is_compressed
from penstock.runtime.budget import Share

COPIES = 2
"""Pieces that exist at once: one is parsed while views of the one before may still be in use."""
_MARGIN = 2
"""How much shorter than on average the records of a piece may be before it is cut again."""
_MOST_OPEN_FILES = 16


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of one block: some of a file's index."""

    file_index: int
    numbers: range


class TextDecoder(BlockDecoder):
    """Open files, and the bytes of the piece of text in work and of the one before."""

    def __init__(
        self,
        files: Sequence[DataFile],
        indexes: Sequence[RecordIndex],
        blocks: Sequence[Chunks],
        framing: Framing,
        parser: RecordParser,
        share: Share,
    ) -> None:
        self._files = files
        self._indexes = indexes
        self._blocks = blocks
        self._framing = framing
        self._parser = parser
        self._share = share
        self._most_needed_bytes = share.limit_bytes // COPIES
        self._lease = RollingLease(share)
        self._opened: dict[int, TextFile] = {}

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a block: a batch for each chunk, or for each piece of it where the share is small."""
        chunks = self._blocks[block]
        index = self._indexes[chunks.file_index]
        row = int(index.num_records[: chunks.numbers.start].sum())
        first_row, end_row = row + first_row, row + end_row
        for number in chunks.numbers:
            num_records = int(index.num_records[number])
            if row < end_row and row + num_records > first_row:
                yield from self._rows(chunks.file_index, number, row, first_row, end_row)
            row += num_records

    def _rows(
        self, file_index: int, chunk: int, row: int, first_row: int, end_row: int
    ) -> Iterator[pa.RecordBatch]:
        """Those rows of a chunk, which begins at `row`, that are wanted; all numbers are rows of the file."""
        for piece in self._pieces(file_index, chunk):
            start, row = row, row + piece.num_records
            if row <= first_row:
                continue
            first, end = max(first_row, start), min(end_row, row)
            needed_bytes = self._parser.cost.of(len(piece.text), piece.num_records)
            self._lease.move_on(needed_bytes, retained_bytes=needed_bytes)
            text = self._slice(piece, first - start, end - start)
            yield self._parser.parse(text, file_index, first, end - first)
            if row >= end_row:
                return

    def _slice(self, piece: TextPiece, first: int, end: int) -> memoryview:
        """The text of some records of a piece."""
        if first == 0 and end == piece.num_records:
            return piece.text
        starts = self._framing.starts(piece.text)
        return piece.text[starts[first] : starts[end] if end < len(starts) else None]

    def _pieces(self, file_index: int, chunk: int) -> Iterator[TextPiece]:
        """A chunk as one piece, or in smaller ones that take half of the share at most."""
        index, text = self._indexes[file_index], self._open(file_index)
        offset, num_bytes, num_records = (
            int(column[chunk]) for column in (index.offsets, index.num_bytes, index.num_records)
        )
        needed_bytes = self._parser.cost.of(num_bytes, num_records)
        if needed_bytes <= self._most_needed_bytes:
            content = text.read(offset, num_bytes)
            self._check_unchanged(file_index, len(content) == num_bytes)
            yield TextPiece(offset, memoryview(content), num_records)
            return
        piece_bytes = max(1, num_bytes * self._most_needed_bytes // (_MARGIN * needed_bytes))
        for piece in cut_records(text, self._framing, offset, offset + num_bytes, (piece_bytes, num_bytes)):
            num_records -= piece.num_records
            yield from self._fitting(piece, file_index)
        self._check_unchanged(file_index, num_records == 0)

    def _check_unchanged(self, file_index: int, is_as_indexed: bool) -> None:
        if not is_as_indexed:
            raise DataError(f"{self._files[file_index].path}: has changed while it was being read")

    def _fitting(self, piece: TextPiece, file_index: int) -> Iterator[TextPiece]:
        """A piece, in parts where its records are so short, or so long, that it would take too much."""
        needed_bytes = self._parser.cost.of(len(piece.text), piece.num_records)
        if needed_bytes <= self._most_needed_bytes:
            yield piece
        elif piece.num_records == 1:
            raise BudgetExceeded(
                f"{self._files[file_index].path}: the record at byte {piece.offset} takes "
                f"{format_size(COPIES * needed_bytes)} while it is read and handed on, but {self._share.name} may "
                f"hold {format_size(self._share.limit_bytes)}; raise {self._share.setting}, or shorten the record"
            )
        else:
            starts = self._framing.starts(piece.text)
            middle = int(starts[len(starts) // 2])
            halves = (piece.text[:middle], len(starts) // 2), (piece.text[middle:], -(-len(starts) // 2))
            offset = piece.offset
            for text, num_records in halves:
                yield from self._fitting(TextPiece(offset, text, num_records), file_index)
                offset += middle

    def _open(self, file_index: int) -> TextFile:
        """A file's text; some stay open. What a compressed one holds is not small: it stays open alone."""
        opened = self._opened.pop(file_index, None)
        if opened is None:
            file = self._files[file_index]
            most_others = 0 if is_compressed(file) else _MOST_OPEN_FILES - 1
            while len(self._opened) > most_others:
                self._opened.pop(next(iter(self._opened))).close()
            opened = TextFile(file)
        self._opened[file_index] = opened
        return opened
