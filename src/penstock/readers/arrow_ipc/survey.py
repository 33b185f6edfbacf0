"""Arrow IPC files, some rows of a record batch at a time, inside the reader's share.

Any number of rows of a record batch can be read where they lie, unless it is compressed: then its columns are unpacked
whole, and two record batches must fit: one that is in use as views, and the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from penstock.readers.arrow_ipc.decode import IpcDecoder
from penstock.readers.arrow_ipc.layout import IpcLayout, read_layout
from penstock.readers.arrow_ipc.plan import PART_BYTES, Needs
from penstock.readers.blocks import Blocks
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint
from penstock.readers.origin import ROW_FIELD
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import BlockDecoder, Survey, Wanted
from penstock.runtime.budget import Share


@dataclass(frozen=True)
class IpcSurvey(Survey):
    """What the metadata of the files says."""

    files: tuple[DataFile, ...]
    layout: IpcLayout

    @property
    def fingerprints(self) -> tuple[Fingerprint, ...]:  # type: ignore[override]
        """Names, sizes, rows, and checksums of both ends, with the footer in one."""
        return self.layout.fingerprints

    @property
    def columns(self) -> pa.Schema:
        """The wanted columns."""
        return self.layout.schema

    @cached_property
    def blocks(self) -> Blocks:
        """The record batches."""
        return Blocks.of((batch.file_index, batch.first_row, batch.num_rows) for batch in self.layout.batches)

    @cached_property
    def row_bytes(self) -> int:
        """From the sizes of all buffers; words of dictionaries stand there once."""
        total_bytes = sum(batch.decoded_bytes for batch in self.layout.batches)
        return -(-total_bytes // max(1, self.num_rows)) + ROW_FIELD.type.bit_width // 8

    @cached_property
    def needs(self) -> Needs:
        """What the share depends on."""
        return Needs.of(self.layout)

    @property
    def least_bytes(self) -> int:
        """Two compressed record batches, or two parts of 64 KiB."""
        return self.needs.least_bytes

    @property
    def ample_bytes(self) -> int:
        """Two compressed record batches, or two parts of 8 MiB."""
        return self.needs.ample_bytes

    @cached_property
    def block_bytes(self) -> int:
        """Rows of a record batch, or all of a compressed one: a view of some of its rows holds it."""
        sizes = [
            batch.decoded_bytes if batch.is_compressed else min(PART_BYTES, batch.decoded_bytes)
            for batch in self.layout.batches
        ]
        return max(sizes, default=1)

    def decoder(self, share: Share) -> BlockDecoder:
        """Gives out rows of record batches."""
        return IpcDecoder(self.layout, share)


def survey_ipc(
    reading: ReadingSection,  # noqa: ARG001 - every format is surveyed alike
    files: Sequence[DataFile],
    wanted: Wanted,
) -> Survey:
    """Read the metadata. The files say their own types: no option of `reading` is needed."""
    return IpcSurvey(tuple(files), read_layout(files, wanted.columns))
