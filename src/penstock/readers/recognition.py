"""How files are read that no run file describes: what a command line says, and what their first bytes show."""

import csv
import zlib
from contextlib import closing
from dataclasses import dataclass, replace

from penstock.config.errors import ConfigError, DataError, hint
from penstock.config.sizes import KIB, MIB, parse_size
from penstock.readers import FORMATS
from penstock.readers.files import DataFile, data_suffix, list_files
from penstock.readers.indexed_files import TextFile
from penstock.readers.scan import dataset_type_of
from penstock.readers.sections import Field, ReadingSection, parse_fields
from penstock.readers.storage import open_input, read_at

_ESCAPES = {"\\t": "\t", "tab": "\t", "\\x01": "\x01", "\\x02": "\x02"}
_MAX_HEADER_BYTES = MIB
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
_CRC32C, _ALL_BITS, _MASK_DELTA = 0x82F63B78, 0xFFFFFFFF, 0xA282EAD8


def size_of(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}") from error


def files_of(path: str) -> list[DataFile]:
    if not path.strip():
        raise DataError("no data path is given")
    return list_files(path)


def reading_of(
    files: list[DataFile],
    *,
    delimiter: str | None = None,
    with_header: bool = True,
    fields: str | None = None,
    dataset_type: str | None = None,
) -> ReadingSection:
    """Reading options; CSV columns without a header and without declared fields are named c0, c1, ..."""
    if dataset_type is not None and dataset_type not in FORMATS:
        raise ConfigError(f"--dataset-type: there is no '{dataset_type}'; {hint(dataset_type, FORMATS)}")
    is_csv = dataset_type_of(ReadingSection(dataset_type=dataset_type), files) == "CsvDataset"
    if not is_csv and (delimiter is not None or not with_header):
        option = "--delimiter" if delimiter is not None else "--no-header"
        raise ConfigError(f"{option} has no effect: {files[0].path} is not CSV")
    separator = "\t" if data_suffix(files[0].path) == ".tsv" else ","
    if delimiter is not None:
        separator = _ESCAPES.get(delimiter, delimiter)
        if len(separator) != 1:
            raise ConfigError(f"--delimiter is {delimiter!r}; columns are separated by one character")
    try:
        declared = parse_fields(fields or "")
    except ValueError as error:
        raise ConfigError(f"--fields {error}") from error
    if not with_header and not declared:
        num_columns = len(_first_cells(files[0], separator))
        declared = [Field(input_name=f"c{index}") for index in range(num_columns)]
    return ReadingSection(
        dataset_type=dataset_type, input_fields=declared, delimiter=separator, with_header=with_header
    )


def _first_cells(file: DataFile, delimiter: str) -> list[str]:
    with closing(TextFile(file)) as source:
        text = source.read(0, _MAX_HEADER_BYTES)
    try:
        lines = text[: text.rfind(b"\n") + 1 or len(text)].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file.path}: is not UTF-8 text; is it CSV?") from error
    return next(csv.reader(lines.splitlines(keepends=True), delimiter=delimiter), [])


@dataclass(frozen=True, slots=True)
class Likeness:
    """The format that a file seems to have, for messages about a file that is not of the format that was said."""

    dataset_type: str
    delimiter: str | None = None  # of CSV: what stands between the cells of the first line
    is_gzip: bool = False


def recognise(file: DataFile) -> Likeness | None:
    """What a file looks like; None where nothing is certain enough, or the file cannot be read."""
    try:
        with open_input(file.path) as source:
            start = read_at(source, _START_BYTES, 0)
        if not start.startswith(_GZIP):
            return likeness_of(start)
        found = likeness_of(zlib.decompressobj(wbits=31).decompress(start, _START_BYTES))
    except (OSError, DataError, zlib.error):
        return None
    return None if found is None else replace(found, is_gzip=True)


def likeness_of(start: bytes) -> Likeness | None:
    r"""What begins like this.

    >>> likeness_of(b"user\tage\nann\t31\n")
    Likeness(dataset_type='CsvDataset', delimiter='\t', is_gzip=False)
    """
    for magic, dataset_type in _MAGIC.items():
        if start.startswith(magic):
            return Likeness(dataset_type)
    name_end = _ZIP_NAME_AT + int.from_bytes(start[26:28], "little")
    if start.startswith(_ZIP) and start[_ZIP_NAME_AT:name_end].endswith(b".npy"):
        return Likeness("NumpyDataset")
    length, checksum = start[:8], start[8:12]
    if len(checksum) == 4 and _masked_crc32c(length) == int.from_bytes(checksum, "little"):
        return Likeness("TFRecordDataset")
    # JSON or CSV, where the first line is text that people can read.
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


def _masked_crc32c(content: bytes) -> int:
    """Of a few bytes: the compiled way takes longer to load than this to run."""
    state = _ALL_BITS
    for byte in content:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (_CRC32C if state & 1 else 0)
    crc = state ^ _ALL_BITS
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL_BITS
