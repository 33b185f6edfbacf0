"""The rows of one shuffle window, ready to be drawn in any order."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.batching.waiting import join
from penstock.config.sizes import GIB


class Window:
    """Rows in as few chunks as possible: Arrow draws from one chunk ten times faster than from several."""

    def __init__(self, pieces: list[pa.RecordBatch], chunk_bytes: int = GIB) -> None:
        """Takes the pieces over: the list is emptied, so that they are freed while they are joined.

        Chunks have at most `chunk_bytes`, since string offsets of Arrow end at 2 GiB.
        """
        self._chunks = [_join_columns(group) for group in _group(pieces, chunk_bytes)]
        self._starts = np.cumsum([0] + [chunk.num_rows for chunk in self._chunks])
        self.num_rows = int(self._starts[-1])
        self.num_bytes = sum(chunk.nbytes for chunk in self._chunks)

    def take(self, indices: NDArray[np.int64]) -> pa.RecordBatch:
        """The rows at these indices, in this order."""
        if len(self._chunks) == 1:
            return self._chunks[0].take(indices)
        by_chunk = np.argsort(indices, kind="stable")
        cuts = np.searchsorted(indices[by_chunk], self._starts)
        drawn = [
            chunk.take(indices[by_chunk[start:end]] - first)
            for chunk, first, start, end in zip(self._chunks, self._starts, cuts, cuts[1:], strict=False)
            if start < end
        ]
        places = np.empty_like(by_chunk)
        places[by_chunk] = np.arange(len(by_chunk))
        return join(drawn).take(places)


def _group(pieces: list[pa.RecordBatch], chunk_bytes: int) -> list[list[pa.RecordBatch]]:
    groups: list[list[pa.RecordBatch]] = []
    num_bytes = chunk_bytes
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        num_bytes += piece.nbytes
        if num_bytes > chunk_bytes:
            groups.append([])
            num_bytes = piece.nbytes
        groups[-1].append(piece)
    return groups


def _join_columns(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Joined column by column, each freed when it is done: at the peak one column exists twice, not all."""
    schema = pieces[0].schema
    columns = [[piece.column(index) for piece in pieces] for index in range(len(schema))]
    pieces.clear()
    joined = []
    for parts in columns:
        joined.append(pa.concat_arrays(parts))
        parts.clear()
    return pa.RecordBatch.from_arrays(joined, schema=schema)
