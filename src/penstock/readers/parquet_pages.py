"""How large the pages of a column chunk are, from their headers.

The footer tells only the bytes of a whole chunk. What decoding holds depends on the dictionary and on one data
page. Before the start the first headers are read, which tell it for most files; before a row group is decoded all
of them, since pages may grow.
"""

from dataclasses import dataclass

import pyarrow.parquet as pq

from penstock.config.sizes import KIB, MIB
from penstock.readers.page_headers import DICTIONARY_PAGE, read_page_header

STREAM_BYTES = 64 * KIB
"""Read at once from the file, per column."""
_USUAL_PAGE_BYTES = 9 * MIB // 8
"""What writers make a page by default, and a little more."""
_PROBED_FROM_BYTES = 128 * KIB
"""Smaller chunks are counted whole: reading headers would tell little."""


@dataclass(frozen=True, slots=True)
class ChunkPages:
    """Decompressed sizes of a chunk's dictionary (0: none) and of its largest data page."""

    dictionary_bytes: int
    page_bytes: int

    @property
    def held_bytes(self) -> int:
        """What a column holds while it is decoded: its dictionary as read and as decoded, a page, the stream."""
        return 2 * self.dictionary_bytes + self.page_bytes + min(self.page_bytes, STREAM_BYTES)


def first_pages(descriptor: int, chunk: pq.ColumnChunkMetaData) -> ChunkPages:
    """What the first pages of a chunk let expect."""
    total_bytes = chunk.total_uncompressed_size
    is_coded = chunk.has_dictionary_page
    dictionary_bytes = min(total_bytes, _USUAL_PAGE_BYTES) if is_coded else 0
    if total_bytes < _PROBED_FROM_BYTES:
        return ChunkPages(dictionary_bytes, total_bytes)
    page = read_page_header(descriptor, _start(chunk))
    if page is not None and page.kind == DICTIONARY_PAGE:
        dictionary_bytes = page.size_bytes
        page = read_page_header(descriptor, page.end)
    if page is None:
        return ChunkPages(dictionary_bytes, min(total_bytes, _USUAL_PAGE_BYTES))
    # Behind a dictionary that grew full come pages of another encoding, larger than the first.
    page_bytes = max(2 * page.size_bytes, _USUAL_PAGE_BYTES if is_coded else 0)
    return ChunkPages(dictionary_bytes, min(total_bytes, page_bytes))


def all_pages(descriptor: int, chunk: pq.ColumnChunkMetaData) -> ChunkPages:
    """What a chunk really holds; as far as its headers can be read."""
    if chunk.total_uncompressed_size < _PROBED_FROM_BYTES:
        return first_pages(descriptor, chunk)
    dictionary_bytes = page_bytes = 0
    offset = _start(chunk)
    end = offset + chunk.total_compressed_size
    while offset < end:
        page = read_page_header(descriptor, offset)
        if page is None:
            return first_pages(descriptor, chunk)
        if page.kind == DICTIONARY_PAGE:
            dictionary_bytes = max(dictionary_bytes, page.size_bytes)
        else:
            page_bytes = max(page_bytes, page.size_bytes)
        offset = page.end
    return ChunkPages(dictionary_bytes, page_bytes)


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        return min(chunk.dictionary_page_offset, chunk.data_page_offset)
    return chunk.data_page_offset
