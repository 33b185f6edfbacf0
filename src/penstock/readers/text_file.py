"""The content of one file as UTF-8 bytes, however it is compressed and encoded.

What a file is compressed with is told by its first bytes, not by its name: downloads lose suffixes and gain wrong ones.
"""

import codecs
import logging
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.files import UTF8, DataFile, zip_refusal
from penstock.readers.storage import open_input, read_at

logger = logging.getLogger(__name__)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some programs begin UTF-8 text with it
_CODECS = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_ZIP = b"PK\x03\x04"
_MAGIC_BYTES = 4
_LOOKED_AT_BYTES = 64 * KIB
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def as_text_files(files: Sequence[DataFile], encoding: str = UTF8) -> list[DataFile]:
    """The files with what they are compressed with and encoded as; a zip archive is refused."""
    found = []
    for file in files:
        with open_input(file.path) as source:
            start = read_at(source, _MAGIC_BYTES, 0)
        if start.startswith(_ZIP):
            raise zip_refusal(file.path)
        codec = next((codec for magic, codec in _CODECS.items() if start.startswith(magic)), None)
        found.append(replace(file, codec=codec, encoding=encoding))
        if encoding != UTF8 and (character := _utf8_character(replace(found[-1], encoding=UTF8))):
            with suppress(UnicodeDecodeError):  # reading it says so
                wrong = character.encode().decode(encoding)
                log_once(
                    f"{file.path}: is UTF-8 text, but data_config.encoding is {encoding}, which makes {wrong!r} of "
                    f"{character!r}; set it to utf-8",
                    logging.WARNING,
                )
    return found


def _utf8_character(file: DataFile) -> str | None:
    """The first character beyond ASCII at the beginning of a file, if that is UTF-8; other encodings never are."""
    with closing(TextFile(file)) as source:
        start = source.read(0, _LOOKED_AT_BYTES)
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)  # the last character may be torn
    except UnicodeDecodeError:
        return None
    return next((character for character in text if not character.isascii()), None)


class TextFile:
    """The decompressed content of one file, recoded to UTF-8 where it is something else.

    A plain file is read at any offset. Any other is read from its start: reading on is cheap, and so is going back
    to where the last reading began; anything earlier starts over.
    """

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self._open()

    def _open(self) -> None:
        self._source: Any = open_input(self.file.path)
        if self.file.codec is not None:
            self._source = pa.CompressedInputStream(self._source, self.file.codec)  # type: ignore[arg-type]
        if self.file.encoding != UTF8:
            self._source = pa.transcoding_input_stream(self._source, self.file.encoding, UTF8)
        self._last_offset, self._last = 0, b""

    def close(self) -> None:
        self._source.close()

    def read(self, offset: int, num_bytes: int) -> bytes:
        """The text from an offset on; shorter than asked for only at its end."""
        try:
            if not self.file.is_sequential:
                plain: bytes = self._source.read_at(num_bytes, offset)
                return plain
            return self._read_on(offset, num_bytes)
        except UnicodeDecodeError as error:
            wrong = error.object[error.start : error.end].hex(" ")
            raise DataError.at(
                f"is not {self.file.encoding} text: it has the bytes {wrong} ({error.reason}); is "
                "data_config.encoding right?",
                "data_config.encoding",
                file=self.file.path,
            ) from error
        except OSError as error:
            raise DataError(f"{self.file.path}: cannot be read to its end, it is damaged: {error}") from error

    def _read_on(self, offset: int, num_bytes: int) -> bytes:
        if offset < self._last_offset:
            self.close()
            self._open()
        known = self._last[offset - self._last_offset :]
        if len(known) >= num_bytes:
            return known[:num_bytes]
        skip_bytes = offset - self._last_offset - len(self._last)
        self._last_offset, self._last = offset, b""
        while skip_bytes > 0 and (skipped := self._source.read(min(skip_bytes, MIB))):
            skip_bytes -= len(skipped)
        while len(known) < num_bytes and (more := self._source.read(num_bytes - len(known))):
            known += more
        self._last = known
        return known


@lru_cache(maxsize=1024)
def log_once(message: str, level: int = logging.INFO) -> None:
    """A run looks at its files several times."""
    logger.log(level, "%s", message)


def not_utf8(text: bytes | memoryview) -> str:
    """What to say of bytes that should be UTF-8, with a guess at what they are.

    >>> not_utf8("Zürich".encode("cp1252"))
    'is not UTF-8 text; it may be cp1252: set data_config.encoding'
    """
    content, guess = bytes(text), "latin-1"
    if content.startswith(_UTF16_MARKS) or 3 * content.count(0) > len(content):
        guess = "utf-16"
    elif b"\0" in content:
        return "is not UTF-8 text, and has zero bytes; is it text at all?"
    else:
        # Two high bytes for each character are Chinese; in a Western text they mostly stand alone.
        for name, codec in (("cp1252", "cp1252"), ("gbk", "gb2312")):
            with suppress(UnicodeDecodeError):
                content.decode(codec)
                guess = name
    return f"is not UTF-8 text; it may be {guess}: set data_config.encoding"
