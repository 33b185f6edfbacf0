"""How large the pages of a column chunk are, from their headers.

The footer tells only the bytes of a whole chunk. What decoding holds depends on the dictionary and on one data
page. Before the start the first headers are read, which tell it for most files; before a row group is decoded all
of them, since pages may grow.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.sizes import KIB, MIB
from penstock.readers.parquet.page_headers import DICTIONARY_PAGE, PageHeader, read_page_header

STREAM_BYTES = 64 * KIB
"""Read at once from the file, per column."""
_USUAL_PAGE_BYTES = 9 * MIB // 8
"""What writers make a page by default, and a little more."""
_WRITTEN_AT_ONCE = 1024
"""Values that writers add to a page before they look at its size."""
PagesOf = Callable[[pa.NativeFile, pq.ColumnChunkMetaData], "ChunkPages"]
"""A way to know the pages of a chunk."""
_PROBED_FROM_BYTES = 128 * KIB
"""Smaller chunks are counted whole: reading headers would tell little."""

_LEAST_TEXT_BYTES = 4
"""Of a text in a dictionary, its length."""


@dataclass(frozen=True, slots=True)
class ChunkPages:
    """Decompressed sizes of a chunk's dictionary (0: none) and of its largest data page."""

    dictionary_bytes: int
    page_bytes: int
    num_dictionary_values: int = 0

    @property
    def held_bytes(self) -> int:
        """What a column holds while it is decoded: its dictionary as read and as decoded, a page, the stream."""
        return 2 * self.dictionary_bytes + self.page_bytes + min(self.page_bytes, STREAM_BYTES)


def has_unknown_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether the dictionary of a chunk must be looked at to bound it: texts may be of any length."""
    is_small = chunk.total_uncompressed_size < _PROBED_FROM_BYTES
    return chunk.has_dictionary_page and chunk.physical_type == "BYTE_ARRAY" and not is_small


def dictionary_pages(source: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> ChunkPages:
    """What can be expected with a look at the dictionaries of texts alone, and at no data page."""
    pages = _at_most(chunk)
    page = read_page_header(source, chunk_start(chunk)) if has_unknown_dictionary(chunk) else None
    if page is None:
        return pages
    pages = _with_dictionary(pages, page)
    return replace(pages, page_bytes=_bytes_behind_dictionary(pages, chunk))


def first_pages(source: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> ChunkPages:
    """What the first pages of a chunk let expect."""
    total_bytes = chunk.total_uncompressed_size
    if total_bytes < _PROBED_FROM_BYTES:
        return _at_most(chunk)
    pages = _at_most(chunk)
    page = read_page_header(source, chunk_start(chunk))
    if page is not None and page.kind == DICTIONARY_PAGE:
        pages = _with_dictionary(pages, page)
        page = read_page_header(source, page.end)
    if page is None:
        return pages
    # Behind a dictionary that grew full come pages of another encoding, larger than the first.
    behind_bytes = _bytes_behind_dictionary(pages, chunk) if chunk.has_dictionary_page else 0
    return replace(pages, page_bytes=min(total_bytes, max(2 * page.size_bytes, behind_bytes)))


def all_pages(source: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> ChunkPages:
    """What a chunk really holds; as far as its headers can be read."""
    if chunk.total_uncompressed_size < _PROBED_FROM_BYTES:
        return _at_most(chunk)
    pages = ChunkPages(0, 0)
    offset = chunk_start(chunk)
    end = offset + chunk.total_compressed_size
    while offset < end:
        page = read_page_header(source, offset)
        if page is None:
            return first_pages(source, chunk)
        if page.kind == DICTIONARY_PAGE:
            pages = _with_dictionary(pages, page)
        elif page.size_bytes > pages.page_bytes:
            pages = replace(pages, page_bytes=page.size_bytes)
        offset = page.end
    return pages


def _bytes_behind_dictionary(pages: ChunkPages, chunk: pq.ColumnChunkMetaData) -> int:
    """A usual page and what is written at once, of values as long as the dictionary's; at most what the chunk has."""
    mean_bytes = pages.dictionary_bytes // max(1, pages.num_dictionary_values)
    page_bytes = _USUAL_PAGE_BYTES + mean_bytes * _WRITTEN_AT_ONCE
    return max(0, min(page_bytes, chunk.total_uncompressed_size - pages.dictionary_bytes))


def _with_dictionary(pages: ChunkPages, page: PageHeader) -> ChunkPages:
    if page.kind != DICTIONARY_PAGE:
        return pages
    return replace(pages, dictionary_bytes=page.size_bytes, num_dictionary_values=page.num_dictionary_values)


def _at_most(chunk: pq.ColumnChunkMetaData) -> ChunkPages:
    """What can be said without a look: no page is larger than the chunk, and hardly any than usual."""
    page_bytes = min(chunk.total_uncompressed_size, _USUAL_PAGE_BYTES)
    if not chunk.has_dictionary_page:
        return ChunkPages(0, page_bytes)
    return ChunkPages(page_bytes, page_bytes, min(chunk.num_values, page_bytes // _LEAST_TEXT_BYTES))


def chunk_start(chunk: pq.ColumnChunkMetaData) -> int:
    """The offset of a chunk's first page."""
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        return min(chunk.dictionary_page_offset, chunk.data_page_offset)
    return chunk.data_page_offset
