"""What a file looks like, from its first bytes: for messages about a file that is not of the format that was said."""

import zlib
from dataclasses import dataclass

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.files import DataFile
from penstock.readers.storage import open_input, read_at

_START_BYTES = 4 * KIB
_MAGIC = {
    b"PAR1": "ParquetDataset",
    b"ARROW1": "ArrowDataset",
    b"\xff\xff\xff\xff": "ArrowDataset",
    b"\x93NUMPY": "NumpyDataset",
}
"""With what files begin; the third is a stream of Arrow."""
_GZIP = b"\x1f\x8b"
_ZIP, _ZIP_NAME_AT = b"PK\x03\x04", 30
_DELIMITERS = ",\t;|\x01"
_RECORD_LENGTH_BYTES = 8
_CRC32C, _ALL_BITS, _MASK_DELTA = 0x82F63B78, 0xFFFFFFFF, 0xA282EAD8


@dataclass(frozen=True, slots=True)
class Likeness:
    """The format that a file seems to have."""

    dataset_type: str
    delimiter: str | None = None
    """Of CSV: what stands between the cells of the first line."""
    is_gzip: bool = False


def recognise(file: DataFile) -> Likeness | None:
    """What a file looks like; None where nothing is certain enough, or the file cannot be read."""
    try:
        with open_input(file.path) as source:
            start = read_at(source, _START_BYTES, 0)
    except (OSError, DataError):
        return None
    if not start.startswith(_GZIP):
        return likeness_of(start)
    try:
        unpacked = zlib.decompressobj(wbits=31).decompress(start, _START_BYTES)
    except zlib.error:
        return None
    found = likeness_of(unpacked)
    return None if found is None else Likeness(found.dataset_type, found.delimiter, is_gzip=True)


def likeness_of(start: bytes) -> Likeness | None:
    r"""What begins like this.

    >>> likeness_of(b"user\tage\nann\t31\n")
    Likeness(dataset_type='CsvDataset', delimiter='\t', is_gzip=False)
    """
    for magic, dataset_type in _MAGIC.items():
        if start.startswith(magic):
            return Likeness(dataset_type)
    if _is_npz(start):
        return Likeness("NumpyDataset")
    if _is_record(start):
        return Likeness("TFRecordDataset")
    return _text_likeness(start)


def _text_likeness(start: bytes) -> Likeness | None:
    """JSON or CSV, where the first line is text that people can read."""
    try:
        line = start.lstrip().split(b"\n", 1)[0].decode("utf-8-sig").strip("\r")
    except UnicodeDecodeError:
        return None
    if not all(character.isprintable() or character in _DELIMITERS for character in line):
        return None
    if line.startswith(('{"', "[{")) or line in ("{", "{}", "["):
        return Likeness("JsonDataset")
    delimiter = max(_DELIMITERS, key=line.count)
    return Likeness("CsvDataset", delimiter) if delimiter in line else None


def _is_npz(start: bytes) -> bool:
    """A zip whose first member is an array."""
    name_bytes = int.from_bytes(start[26:28], "little")
    name = start[_ZIP_NAME_AT : _ZIP_NAME_AT + name_bytes]
    return start.startswith(_ZIP) and name.endswith(b".npy")


def _is_record(start: bytes) -> bool:
    """Whether it begins with a length and the checksum of that, as TFRecord files do."""
    length, checksum = start[:_RECORD_LENGTH_BYTES], start[_RECORD_LENGTH_BYTES:][:4]
    return len(checksum) == 4 and _masked_crc32c(length) == int.from_bytes(checksum, "little")


def _masked_crc32c(content: bytes) -> int:
    """Of a few bytes: the compiled way takes longer to load than this to run."""
    state = _ALL_BITS
    for byte in content:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (_CRC32C if state & 1 else 0)
    crc = state ^ _ALL_BITS
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL_BITS
