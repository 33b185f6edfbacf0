"""The profile of a data set."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.config.sizes import MIB
from penstock.prep.profile.column import ColumnFacts, ColumnProfile
from penstock.prep.profile.pieces import BlockPieces, choose_pieces
from penstock.readers.survey import Survey
from penstock.runtime.budget import Share

_MOST_ROWS = 1 << 14
_MOST_BYTES = 2 * MIB
"""Of rows that are looked at together: hashes of their values, several words for each, exist at once."""


@dataclass(frozen=True, slots=True)
class DataProfile:
    """What the rows say that were looked at."""

    columns: tuple[ColumnFacts, ...]
    num_rows: int
    """Of the data."""
    num_seen: int
    """Of these, looked at."""
    row_bytes: float
    """Of a row in memory."""
    num_places: int
    """From how many places of the data rows were taken."""
    first_rows: pa.RecordBatch | None
    """Some rows of the beginning."""

    @property
    def is_whole(self) -> bool:
        """Whether all rows were looked at."""
        return self.num_seen == self.num_rows


def profile_rows(
    survey: Survey,
    share: Share,
    *,
    full: bool = False,
    on_rows: Callable[[int], None] = lambda num_rows: None,
) -> DataProfile:
    """Look at pieces from all over the data, or at all rows, inside the reader's share and a few MiB."""
    pieces = choose_pieces(survey.blocks, survey.row_bytes, full=full)
    return profile_pieces(survey, share, pieces, on_rows=on_rows)


def profile_pieces(
    survey: Survey,
    share: Share,
    pieces: Sequence[BlockPieces],
    *,
    columns: Sequence[str] | None = None,
    on_rows: Callable[[int], None] = lambda num_rows: None,
    enough: Callable[[], bool] = lambda: False,
) -> DataProfile:
    """Look at these pieces, and only at these columns where they are given; `enough` may end it before the last."""
    names = list(survey.columns.names if columns is None else columns)
    profiles = [ColumnProfile(survey.columns.field(name)) for name in names]
    num_seen, num_bytes = 0, 0
    first_rows: pa.RecordBatch | None = None
    for batch in _slices(batch.select(names) for batch in _read(survey, share, pieces, enough)):
        for profile, column in zip(profiles, batch.columns, strict=True):
            profile.add(column)
        if first_rows is None:
            first_rows = batch.take(list(range(batch.num_rows)))
        num_seen += batch.num_rows
        num_bytes += batch.nbytes
        on_rows(batch.num_rows)
    return DataProfile(
        columns=tuple(profile.facts() for profile in profiles),
        num_rows=survey.num_rows,
        num_seen=num_seen,
        row_bytes=num_bytes / max(1, num_seen),
        num_places=sum(len(piece.intervals) for piece in pieces),
        first_rows=first_rows,
    )


def num_chosen_rows(survey: Survey, *, full: bool) -> int:
    """How many rows `profile_rows` will look at."""
    return sum(piece.num_rows for piece in choose_pieces(survey.blocks, survey.row_bytes, full=full))


def _read(
    survey: Survey, share: Share, pieces: Sequence[BlockPieces], enough: Callable[[], bool]
) -> Iterator[pa.RecordBatch]:
    decoder = survey.decoder(share)
    try:
        for piece in pieces:
            first_row, end_row = piece.intervals[0][0], piece.intervals[-1][1]
            at = first_row
            for batch in decoder.batches(piece.block, first_row, end_row):
                yield from _within(batch, at, piece.intervals)
                at += batch.num_rows
                if enough():
                    return
    finally:
        decoder.close()


def _within(
    batch: pa.RecordBatch, first_row: int, intervals: Sequence[tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, which begins at `first_row` of its block, that lie in the intervals."""
    for start, end in intervals:
        first, last = max(0, start - first_row), min(batch.num_rows, end - first_row)
        if first < last:
            yield batch.slice(first, last - first)


def _slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        row_bytes = max(1, batch.nbytes // batch.num_rows)
        num_rows = max(1, min(_MOST_ROWS, _MOST_BYTES // row_bytes))
        for start in range(0, batch.num_rows, num_rows):
            yield batch.slice(start, num_rows)
