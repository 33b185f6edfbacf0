"""Text cut into pieces of whole records."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.config.errors import DataError
from penstock.config.sizes import format_size
from penstock.readers.text.framing import Framing
from penstock.readers.text.source import TextFile


class TextPiece(NamedTuple):
    """Whole records, and where they begin in the (decompressed) text."""

    offset: int
    text: memoryview
    num_records: int


def cut_records(
    text: TextFile, framing: Framing, start: int, end: int | None, sizes: tuple[int, int]
) -> Iterator[TextPiece]:
    """The text from `start` to `end` (None: all of it) in pieces that end with a record.

    `sizes`: how many bytes a piece has where records are short, and how many a record may have at most. The cuts
    depend on `start` and the sizes alone.
    """
    piece_bytes, most_bytes = sizes
    wanted_bytes = piece_bytes
    while end is None or start < end:
        left_bytes = wanted_bytes if end is None else min(wanted_bytes, end - start)
        content = text.read(start, left_bytes)
        is_last = len(content) < left_bytes or start + left_bytes == end
        length, num_records = framing.whole_records(content, is_last)
        if length:
            yield TextPiece(start, memoryview(content)[:length], num_records)
        if is_last:
            _check_closed(text, framing, start, content)
            return
        if length == 0 and wanted_bytes >= most_bytes:
            raise DataError(
                f"{text.file.path}: the record at byte {start} does not end within {format_size(most_bytes)}; "
                "is a quote unbalanced?"
            )
        wanted_bytes = piece_bytes if length else min(2 * wanted_bytes, most_bytes)
        start += length


def _check_closed(text: TextFile, framing: Framing, start: int, content: bytes) -> None:
    if framing.ends_inside(content):
        last = int(framing.starts(content)[-1])
        raise DataError(f"{text.file.path}: the record at byte {start + last} ends inside quotes; close them")
