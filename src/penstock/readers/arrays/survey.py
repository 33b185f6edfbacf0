"""NumPy files, some rows at a time, inside the reader's share.

Rows are read from the files rather than mapped: pages of a mapped file count in the process's memory for as long as
they are mapped, members of an archive lie at odd offsets, and an object store cannot be mapped at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import KIB, format_size
from penstock.readers.arrays.layout import BLOCK_BYTES, ArraysLayout, Part, read_layout, row_ranges
from penstock.readers.arrays.npz import STREAM_BYTES
from penstock.readers.arrays.rows import ArrayFiles, reading_row_bytes
from penstock.readers.arrays.values import Place, given_row_bytes, to_arrow
from penstock.readers.blocks import Blocks
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint
from penstock.readers.leasing import RollingLease
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import BlockDecoder, Survey, Wanted
from penstock.runtime.budget import Share

_LEAST_BATCH_BYTES = 64 * KIB
"""With batches smaller than that, opening and calling would take longer than reading."""
_SAMPLED_ROWS = 256


@dataclass(frozen=True, slots=True)
class PartNeeds:
    """Bytes of a part's rows."""

    given_row_bytes: int
    """As they are given out, at most."""
    reading_row_bytes: int
    """While they are read and converted."""
    stream_bytes: int
    """What open streams hold, whatever the number of rows."""

    @classmethod
    def of(cls, part: Part) -> "PartNeeds":
        """From the headers."""
        arrays = part.arrays.values()
        return cls(
            max(1, sum(given_row_bytes(array.dtype, array.shape) for array in arrays)),
            max(1, sum(reading_row_bytes(array) for array in arrays)),
            sum(STREAM_BYTES for array in arrays if array.member is not None),
        )

    @property
    def row_bytes(self) -> int:
        """Of a row that is being read beside one that is still in use."""
        return self.given_row_bytes + self.reading_row_bytes

    def share_bytes(self, batch_bytes: int) -> int:
        """The share with which batches of about so many bytes are read."""
        return self.stream_bytes + self.row_bytes * max(1, batch_bytes // self.given_row_bytes)


@dataclass(frozen=True)
class NumpySurvey(Survey):
    """What the headers of the arrays say."""

    layout: ArraysLayout

    @property
    def files(self) -> tuple[DataFile, ...]:  # type: ignore[override]
        """The parts: archives and folders."""
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
        looked_at = {id(part): part for part in (parts[:1] + parts[len(parts) // 2 :][:1] + parts[-1:])}
        files = ArrayFiles()
        batches = [
            read_batch(files, part, self.columns, 0, min(_SAMPLED_ROWS, part.num_rows))
            for part in looked_at.values()
        ]
        files.close()
        return max(
            1, sum(batch.nbytes for batch in batches) // max(1, sum(batch.num_rows for batch in batches))
        )

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
        """A block of 8 MiB, or all rows where they are less."""
        most_rows = int(self.blocks.num_rows.max(initial=0))
        return max(
            min(max(BLOCK_BYTES, needs.given_row_bytes), most_rows * needs.given_row_bytes)
            for needs in self.needs
        )

    def decoder(self, share: Share) -> BlockDecoder:
        """Reads row ranges."""
        return NumpyDecoder(self, share)


def survey_numpy(
    reading: ReadingSection,  # noqa: ARG001 - every format is surveyed alike
    files: Sequence[DataFile],
    wanted: Wanted,
) -> Survey:
    """Read the headers. The arrays say their own types: no option of `reading` is needed."""
    return NumpySurvey(read_layout(files, wanted.columns))


class NumpyDecoder:
    """Open files, and the bytes of the batch in work and of the one before."""

    def __init__(self, survey: NumpySurvey, share: Share) -> None:
        self._survey = survey
        self._batch_rows = [
            _batch_rows(part, needs, share)
            for part, needs in zip(survey.layout.parts, survey.needs, strict=True)
        ]
        self._lease = RollingLease(share)
        self._files = ArrayFiles()

    def close(self) -> None:
        """Close files and give all bytes back; a second time does nothing."""
        self._lease.close()
        self._files.close()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a block, as many at a time as the share holds twice."""
        blocks = self._survey.blocks
        index, start = int(blocks.file_index[block]), int(blocks.first_row[block])
        part, needs, batch_rows = (
            self._survey.layout.parts[index],
            self._survey.needs[index],
            self._batch_rows[index],
        )
        for first in range(start + first_row, start + end_row, batch_rows):
            end = min(first + batch_rows, start + end_row)
            self._lease.move_on(
                needs.stream_bytes + (end - first) * needs.reading_row_bytes,
                (end - first) * needs.given_row_bytes,
            )
            yield read_batch(self._files, part, self._survey.columns, first, end)


def read_batch(
    files: ArrayFiles, part: Part, schema: pa.Schema, first_row: int, end_row: int
) -> pa.RecordBatch:
    """Rows of a part."""
    columns = []
    for name in schema.names:
        values = files.rows(part.arrays[name], first_row, end_row)
        columns.append(to_arrow(values, Place(part.arrays[name].path, name, first_row)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _batch_rows(part: Part, needs: PartNeeds, share: Share) -> int:
    """How many rows are read at once."""
    fitting_rows = (share.limit_bytes - needs.stream_bytes) // needs.row_bytes
    if fitting_rows < 1:
        raise BudgetExceeded(
            f"{part.file.path}: reading a row takes {format_size(needs.share_bytes(0))}, but {share.name} may hold "
            f"{format_size(share.limit_bytes)}; raise {share.setting}, or read fewer columns"
        )
    return min(fitting_rows, max(1, BLOCK_BYTES // needs.given_row_bytes))
