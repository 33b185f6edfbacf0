"""NumPy files, some rows at a time, inside the reader's share.

Rows are read from the files rather than mapped: pages of a mapped file count in the process's memory for as long as
they are mapped, members of an archive lie at odd offsets, and an object store cannot be mapped at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from penstock.config.sizes import KIB
from penstock.readers.arrays.decode import NumpyDecoder, PartNeeds, sample_batches
from penstock.readers.arrays.layout import BLOCK_BYTES, ArraysLayout, read_layout, row_ranges
from penstock.readers.blocks import Blocks
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint
from penstock.readers.origin import ROW_FIELD
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import BlockDecoder, Survey, Wanted
from penstock.runtime.budget import Share

_LEAST_BATCH_BYTES = 64 * KIB
"""With batches smaller than that, opening and calling would take longer than reading."""


@dataclass(frozen=True)
class NumpySurvey(Survey):
    """What the headers of the arrays say."""

    layout: ArraysLayout

    @property
    def files(self) -> tuple[DataFile, ...]:  # type: ignore[override]
        """The parts: archives, files and folders."""
        return tuple(part.file for part in self.layout.parts)

    @property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        """Names, sizes, rows, and checksums of headers and ends."""
        return tuple(part.fingerprint for part in self.layout.parts)

    @property
    def columns(self) -> pa.Schema:
        """The wanted arrays."""
        return self.layout.schema

    @cached_property
    def blocks(self) -> Blocks:
        """Row ranges of about 8 MiB; a part with compressed members is one block, since it is read as a stream."""
        return Blocks.of(
            (index, first_row, num_rows)
            for index, (part, needs) in enumerate(zip(self.layout.parts, self.needs, strict=True))
            for first_row, num_rows in row_ranges(part.num_rows, needs.given_row_bytes, part.is_stream)
        )

    @cached_property
    def needs(self) -> tuple[PartNeeds, ...]:
        """Of each part."""
        return tuple(PartNeeds.of(part) for part in self.layout.parts)

    @cached_property
    def row_bytes(self) -> int:
        """From a look at rows of the first, a middle and the last part: texts are shorter than their width."""
        parts = [part for part in self.layout.parts if part.num_rows]
        looked_at = {part.file.path: part for part in parts[:1] + parts[len(parts) // 2 :][:1] + parts[-1:]}
        batches = [batch for part in looked_at.values() for batch in sample_batches(part, self.columns)]
        num_bytes, num_rows = sum(batch.nbytes for batch in batches), sum(batch.num_rows for batch in batches)
        return -(-num_bytes // max(1, num_rows)) + ROW_FIELD.type.bit_width // 8

    @cached_property
    def least_bytes(self) -> int:
        """Batches of 64 KiB."""
        return max(needs.share_bytes(_LEAST_BATCH_BYTES) for needs in self.needs)

    @cached_property
    def ample_bytes(self) -> int:
        """Whole blocks of 8 MiB."""
        return max(needs.share_bytes(BLOCK_BYTES) for needs in self.needs)

    @cached_property
    def block_bytes(self) -> int:
        """A block of 8 MiB, or all rows where they are less, or a single row that is more."""
        return max(
            max(needs.given_row_bytes, min(BLOCK_BYTES, part.num_rows * needs.given_row_bytes))
            for part, needs in zip(self.layout.parts, self.needs, strict=True)
        )

    def decoder(self, share: Share) -> BlockDecoder:
        """Reads row ranges."""
        return NumpyDecoder(self.layout, self.blocks, self.needs, share)


def survey_numpy(
    reading: ReadingSection,  # noqa: ARG001 - every format is surveyed alike
    files: Sequence[DataFile],
    wanted: Wanted,
) -> Survey:
    """Read the headers. The arrays say their own types: no option of `reading` is needed."""
    return NumpySurvey(read_layout(files, wanted.columns))
