"""The bytes of a CSV file in blocks of whole records.

Cutting the text here, and not in Arrow, gives every block its byte offset: a place in the file that one can
seek to when a run continues, and a row number for every bad value.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import MIB, format_size
from penstock.readers.text.csv_records import end_of_last_record
from penstock.readers.files import COMPRESSIONS, DataFile


class _Text(Protocol):
    def read(self, num_bytes: int, /) -> bytes: ...

    def seekable(self) -> bool: ...

    def seek(self, offset: int, /) -> int: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole records, and where they begin in the (decompressed) text."""

    offset: int
    text: memoryview

    @property
    def end(self) -> int:
        """Where the next block begins."""
        return self.offset + len(self.text)


def is_compressed(file: DataFile) -> bool:
    """Whether the text can only be read from its start."""
    return os.path.splitext(file.path.lower())[1] in COMPRESSIONS


@contextmanager
def open_text(file: DataFile, offset: int = 0) -> Iterator[_Text]:
    """The text from an offset on: by seeking, or in compressed files by reading up to it."""
    try:
        with closing(
            _compressed(file) if is_compressed(file) else open(file.path, "rb", buffering=0)
        ) as text:
            _skip_to(text, offset)
            yield text
    except PermissionError as error:
        raise DataError(f"{file.path}: no permission to read this file") from error
    except OSError as error:
        raise DataError(f"{file.path}: cannot be read to its end, it is damaged: {error}") from error


def _compressed(file: DataFile) -> _Text:
    codec = COMPRESSIONS[os.path.splitext(file.path.lower())[1]]
    return pa.CompressedInputStream(pa.OSFile(file.path, "rb"), codec)  # type: ignore[arg-type]


def _skip_to(text: _Text, offset: int) -> None:
    if text.seekable():
        text.seek(offset)
        return
    while offset and (skipped := text.read(min(offset, MIB))):
        offset -= len(skipped)


def text_blocks(
    file: DataFile, offset: int, delimiter: str, block_bytes: int, most_bytes: int
) -> Iterator[TextBlock]:
    """Blocks of about `block_bytes`, each ending with a record; a record has at most `most_bytes`."""
    with open_text(file, offset) as source:
        yield from _cut(source, file, offset, delimiter, block_bytes, most_bytes)


def _cut(
    source: _Text, file: DataFile, offset: int, delimiter: str, block_bytes: int, most_bytes: int
) -> Iterator[TextBlock]:
    """A block depends on its offset alone, so that a run that continues gives the same blocks."""
    text, wanted_bytes = b"", block_bytes
    while True:
        data = source.read(wanted_bytes - len(text))
        text += data
        if data and len(text) < wanted_bytes:
            continue
        end = end_of_last_record(text, delimiter) if data else len(text)
        if end:
            yield TextBlock(offset, memoryview(text)[:end])
        if not data:
            return
        if end == 0 and wanted_bytes >= most_bytes:
            raise DataError(
                f"{file.path}: the record at byte {offset} does not end within {format_size(most_bytes)}; "
                "a quote may be unbalanced, or else raise memory.limit"
            )
        wanted_bytes = block_bytes if end else wanted_bytes + block_bytes
        offset, text = offset + end, text[end:]
