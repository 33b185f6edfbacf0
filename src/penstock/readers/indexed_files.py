"""Indexed files -> record batches: the same for every format whose records an index lists.

A format adds its `Framing` (where records begin), and to `ScannedRecords` how records become columns at which cost.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, format_size
from penstock.readers.order import Blocks, Int64Array
from penstock.readers.reading import RollingLease
from penstock.readers.record_index import Framing, RecordIndex, TextFile, TextPiece, codec_of, cut_records
from penstock.readers.scan import BlockDecoder, Fingerprint, ReadSizes, ScannedFiles
from penstock.readers.sections import FieldType, ReadingSection
from penstock.readers.stream import Quarantine, row_ids
from penstock.runtime.budget import Share
from penstock.runtime.world import max_decode_threads

_COPIES = 2  # pieces that exist at once: one is parsed while views of the one before may still be in use
_MARGIN = 2  # how much shorter than on average the records of a piece may be before it is cut again
_MAX_OPEN_FILES = 16
_MIN_PIECE_BYTES = 4 * KIB
RECORD_SETTINGS = ("data_config.input_fields", "data_config.delimiter")
"""What the problem of a record may name."""
HAS_CHANGED = "has changed while it was being read"
_SCALARS: dict[str, Any] = {
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
}

Counts = TypeVar("Counts", int, Int64Array)


def declared_types(reading: ReadingSection) -> dict[str, Any]:
    def arrow_type(field_type: FieldType) -> Any:
        kind, _, rest = field_type.value.partition("_")
        if kind == "ARRAY":
            return pa.list_(arrow_type(FieldType(rest)))
        if kind == "MAP":
            key, _, item = rest.partition("_")
            return pa.map_(_SCALARS[key], _SCALARS[item])
        return _SCALARS[kind]

    fields = reading.resolved_input_fields()
    return {
        field.input_name: arrow_type(field.input_type) for field in fields if field.input_type is not None
    }


def join_types(first: Any, second: Any) -> Any:
    """The narrowest type that holds the values of both; string where nothing else does."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if {first, second} == {pa.int64(), pa.uint64()}:
        return pa.uint64()
    if pa.float64() in (first, second) and not {first, second}.isdisjoint({pa.int64(), pa.uint64()}):
        return pa.float64()
    if pa.types.is_list(first) and pa.types.is_list(second):
        return pa.list_(join_types(first.value_type, second.value_type))
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        fields = {field.name: field.type for field in first}
        for field in second:
            fields[field.name] = join_types(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    return pa.string()


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
            # A chunk of a plain file is a block. A compressed file is one: it cannot be entered in its middle, and
            # blocks in any order would have to decompress it from its start again and again.
            numbers = range(len(index.offsets))
            step = 1 if codec_of(file) is None else max(1, len(numbers))
            first_row = 0
            for first in numbers[::step]:
                num_rows = int(index.num_records[first : first + step].sum())
                self.chunks.append((file_index, numbers[first : first + step]))
                rows.append((file_index, first_row, num_rows))
                first_row += num_rows
        self.fingerprints, self.blocks = tuple(marks), Blocks.of(rows)

    @cached_property
    def sizes(self) -> ReadSizes:
        # A few rows must fit a piece of a chunk.
        text_bytes = max(_MIN_PIECE_BYTES, 2 * self.text_row_bytes)
        min_bytes = _COPIES * self.parse_bytes(text_bytes, text_bytes // self.text_row_bytes)
        block_bytes = self.row_bytes * max(int(index.num_records.max(initial=1)) for index in self.indexes)
        # Chunks are read whole, several at once: one that is read by each thread, and one that waits for its turn. A
        # compressed file is read by one thread alone.
        costs = [
            self.parse_bytes(index.num_bytes, index.num_records).max(initial=0) for index in self.indexes
        ]
        whole_bytes = max(min_bytes, _COPIES * int(max(costs)))
        is_compressed = any(codec_of(file) is not None for file in self.files)
        decoder_bytes = 0 if is_compressed else whole_bytes + block_bytes
        ample_bytes = max(whole_bytes, max_decode_threads() * decoder_bytes)
        return ReadSizes(min_bytes, ample_bytes, block_bytes, decoder_bytes)

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
        self._max_needed_bytes = share.limit_bytes // _COPIES
        self._lease = RollingLease(share, share.limit_bytes)
        self._opened: dict[int, TextFile] = {}

    def close(self) -> None:
        self._lease.close()
        while self._opened:
            self._opened.popitem()[1].close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """A batch for each chunk of a block, or for each piece of it where the share is small."""
        file_index, chunks = self._scanned.chunks[block]
        num_records = self._scanned.indexes[file_index].num_records
        row = int(num_records[: chunks.start].sum())
        first_row, end_row = row + first_row, row + end_row  # from here on all rows are those of the file
        for chunk in chunks:
            if row >= end_row:
                return
            if row + num_records[chunk] <= first_row:
                row += int(num_records[chunk])
                continue
            for piece in self._pieces(file_index, chunk):
                first, end = max(first_row - row, 0), min(end_row - row, piece.num_records)
                needed_bytes = self._scanned.parse_bytes(len(piece.text), piece.num_records)
                for start, stop, text in self._fitting(piece, file_index, first, end):
                    needed_bytes = min(needed_bytes, self._max_needed_bytes)
                    self._lease.move_on(needed_bytes, retained_bytes=needed_bytes)
                    yield self._scanned.parse(text, file_index, row + start, stop - start)
                row += piece.num_records
                if row >= end_row:
                    return

    def _pieces(self, file_index: int, chunk: int) -> Iterator[TextPiece]:
        """A chunk as one piece, or in smaller ones that mostly take half of the share at most."""
        index, text = self._scanned.indexes[file_index], self._open(file_index)
        offset, num_bytes, num_records = (
            int(column[chunk]) for column in (index.offsets, index.num_bytes, index.num_records)
        )
        needed_bytes = self._scanned.parse_bytes(num_bytes, num_records)
        if needed_bytes <= self._max_needed_bytes:
            content = text.read(offset, num_bytes)
            if len(content) == num_bytes:
                yield TextPiece(offset, memoryview(content), num_records)
                return
        else:
            sizes = max(1, num_bytes * self._max_needed_bytes // (_MARGIN * needed_bytes)), num_bytes
            for piece in cut_records(text, self._scanned.framing, offset, offset + num_bytes, sizes):
                num_records -= piece.num_records
                yield piece
        if num_records != 0:
            raise DataError(f"{text.file.path}: {HAS_CHANGED}")

    def _fitting(
        self, piece: TextPiece, file_index: int, first: int, end: int
    ) -> Iterator[tuple[int, int, memoryview]]:
        """Records of a piece, in parts that take half of the share at most: first record, end, and text."""
        parse_bytes = self._scanned.parse_bytes
        if first >= end:
            return
        fits = parse_bytes(len(piece.text), piece.num_records) <= self._max_needed_bytes
        if fits and end - first == piece.num_records:
            yield first, end, piece.text
            return
        path = self._scanned.files[file_index].path
        starts = np.append(self._scanned.framing.starts(piece.text), len(piece.text))
        if len(starts) != piece.num_records + 1:
            raise DataError(f"{path}: {HAS_CHANGED}")
        needed_bytes = parse_bytes(starts, np.arange(len(starts)))
        while first < end:
            limit_bytes = needed_bytes[first] + self._max_needed_bytes
            stop = min(end, int(np.searchsorted(needed_bytes, limit_bytes, side="right")) - 1)
            if stop <= first:
                record_bytes = _COPIES * int(needed_bytes[first + 1] - needed_bytes[first])
                raise BudgetExceeded(
                    f"{path}: the record at byte {piece.offset + int(starts[first])} takes {format_size(record_bytes)} "
                    f"while it is read and handed on, but {self._share.name} may hold "
                    f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}, or shorten the record"
                )
            yield first, stop, piece.text[starts[first] : starts[stop]]
            first = stop

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
