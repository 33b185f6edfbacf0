"""Records from all over text files, to find types and sizes before anything is read."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from penstock.config.sizes import KIB, MIB
from penstock.readers.files import DataFile
from penstock.readers.text.framing import Framing
from penstock.readers.text.record_index import RecordIndex
from penstock.readers.text.source import TextFile, is_compressed

_SAMPLE_BYTES = 64 * KIB
_WHOLE_BYTES = MIB
"""Texts up to this size are looked at whole."""
_PLACES = 8
_COMPRESSED_STEP_CHUNKS = 16
_MOST_FILES = 32


def sample_texts(
    files: Sequence[DataFile], indexes: Sequence[RecordIndex], framing: Framing
) -> Iterator[tuple[int, bytes]]:
    """Whole records, with the index of their file: all of small files, some places of large ones."""
    step = -(-len(files) // _MOST_FILES)
    for file_index in range(0, len(files), step):
        index = indexes[file_index]
        if len(index.offsets):
            for text in _texts_of(files[file_index], index, framing):
                yield file_index, text


def _texts_of(file: DataFile, index: RecordIndex, framing: Framing) -> Iterator[bytes]:
    with closing(TextFile(file)) as source:
        if index.num_bytes.sum() <= _WHOLE_BYTES:
            yield from (
                source.read(*place) for place in zip(*_ints(index.offsets, index.num_bytes), strict=True)
            )
            return
        places = _places_in_passing(index) if is_compressed(file) else _places(index)
        for chunk, start in places:
            text = source.read(int(index.offsets[chunk]), int(index.num_bytes[chunk]))
            yield _some_records(text, start, framing)


def _ints(*columns: np.ndarray) -> tuple[list[int], ...]:
    return tuple(column.tolist() for column in columns)


def _places(index: RecordIndex) -> list[tuple[int, int]]:
    """Chunks, and bytes in them, that stand evenly over a file, from its start to its end."""
    ends = np.cumsum(index.num_bytes)
    at = np.linspace(0, ends[-1] - _SAMPLE_BYTES, _PLACES).astype(np.int64)
    chunks = np.searchsorted(ends, at, side="right")
    starts = at - (ends - index.num_bytes)[chunks]
    return list(zip(*_ints(chunks, starts), strict=True))


def _places_in_passing(index: RecordIndex) -> list[tuple[int, int]]:
    """Some chunks of a file that is decompressed anyway, and the end of the last."""
    last = len(index.offsets) - 1
    first_ones = [(chunk, 0) for chunk in range(0, last, _COMPRESSED_STEP_CHUNKS)]
    return [*first_ones, (last, max(0, int(index.num_bytes[last]) - _SAMPLE_BYTES))]


def _some_records(text: bytes, start: int, framing: Framing) -> bytes:
    """About as many bytes as a sample has, from the first record after `start` on; at least one record."""
    starts = np.append(framing.starts(text), len(text))
    first = min(int(np.searchsorted(starts, start)), len(starts) - 2)
    end = int(np.searchsorted(starts, starts[first] + _SAMPLE_BYTES, side="right")) - 1
    return text[starts[first] : starts[max(end, first + 1)]]
