"""What is known of text files before they are read: the same for every format whose records end with lines."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from penstock.config.sizes import KIB
from penstock.readers.blocks import Blocks
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint, fingerprint
from penstock.readers.survey import BlockDecoder, Survey
from penstock.readers.text.decoder import COPIES, Chunks, TextDecoder
from penstock.readers.text.framing import Framing
from penstock.readers.text.parsing import RecordParser
from penstock.readers.text.record_index import RecordIndex
from penstock.readers.text.source import is_compressed
from penstock.runtime.budget import Share
from penstock.runtime.world import most_lanes

_LEAST_PIECE_BYTES = 4 * KIB


@dataclass(frozen=True)
class TextSurvey(Survey):
    """The chunks of the files, and how their records are read."""

    files: tuple[DataFile, ...]
    indexes: tuple[RecordIndex, ...]
    framing: Framing
    parser: RecordParser
    sampled_row_bytes: int
    """Of a row in memory."""
    sampled_text_row_bytes: int
    """Of a row as it stands in the files."""

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        """Names, sizes, rows, and checksums of both ends."""
        pairs = zip(self.files, self.indexes, strict=True)
        return tuple(fingerprint(file, index.total_records, index.checksum) for file, index in pairs)

    @property
    def columns(self) -> pa.Schema:
        """The wanted columns."""
        return self.parser.columns

    @cached_property
    def chunks(self) -> tuple[Chunks, ...]:
        """The chunks of each block.

        A chunk of a plain file is a block. A compressed file is one: it cannot be entered in its middle, and
        blocks in any order would have to decompress it from its start again and again.
        """
        found: list[Chunks] = []
        for file_index, (file, index) in enumerate(zip(self.files, self.indexes, strict=True)):
            numbers = range(len(index.offsets))
            if is_compressed(file) and numbers:
                found.append(Chunks(file_index, numbers))
            else:
                found += [Chunks(file_index, range(number, number + 1)) for number in numbers]
        return tuple(found)

    @cached_property
    def blocks(self) -> Blocks:
        """The chunks of plain files, and compressed files as wholes."""
        rows: list[tuple[int, int, int]] = []
        file_index, row = -1, 0
        for chunks in self.chunks:
            row = row if chunks.file_index == file_index else 0
            file_index = chunks.file_index
            num_records = self.indexes[file_index].num_records
            num_rows = int(num_records[chunks.numbers.start : chunks.numbers.stop].sum())
            rows.append((file_index, row, num_rows))
            row += num_rows
        return Blocks.of(rows)

    @property
    def row_bytes(self) -> int:
        """From a look at several places of the files."""
        return self.sampled_row_bytes

    @cached_property
    def least_bytes(self) -> int:
        """A few rows must fit a piece of a chunk."""
        text_bytes = max(_LEAST_PIECE_BYTES, 2 * self.sampled_text_row_bytes)
        return COPIES * self.parser.cost.of(text_bytes, text_bytes // self.sampled_text_row_bytes)

    @cached_property
    def ample_bytes(self) -> int:
        """Chunks are read whole, several at once."""
        return max(self._whole_chunk_bytes, most_lanes() * self.lane_bytes)

    @cached_property
    def _whole_chunk_bytes(self) -> int:
        cost = self.parser.cost
        most = [int(cost.of(index.num_bytes, index.num_records).max(initial=0)) for index in self.indexes]
        return max(self.least_bytes, COPIES * max(most))

    @cached_property
    def lane_bytes(self) -> int:
        """A chunk that is read, and one that waits for its turn; a compressed file is read by one thread alone."""
        return 0 if any(map(is_compressed, self.files)) else self._whole_chunk_bytes + self.block_bytes

    @cached_property
    def block_bytes(self) -> int:
        """The chunk with most records."""
        return self.row_bytes * max(int(index.num_records.max(initial=1)) for index in self.indexes)

    def decoder(self, share: Share) -> BlockDecoder:
        """Parses chunks, or pieces of them where the share is small."""
        return TextDecoder(self.files, self.indexes, self.chunks, self.framing, self.parser, share)
