"""How files are read that no run file describes: from what a command line says, and what the files show."""

import csv
from contextlib import closing

from penstock.config.errors import ConfigError, DataError
from penstock.config.nearest import hint
from penstock.config.sizes import MIB, parse_size
from penstock.readers import FORMATS
from penstock.readers.files import DataFile, list_files
from penstock.readers.record_index import TextFile
from penstock.readers.scan import dataset_type_of
from penstock.readers.sections import DatasetType, Field, ReadingSection, parse_fields

_ESCAPES = {"\\t": "\t", "tab": "\t", "\\x01": "\x01", "\\x02": "\x02"}
_MOST_HEADER_BYTES = MIB


def size_of(option: str, text: str) -> int:
    """The bytes that an option of the command line says."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}") from error


def reading_of(
    files: list[DataFile],
    *,
    delimiter: str | None = None,
    with_header: bool = True,
    fields: str | None = None,
    dataset_type: str | None = None,
) -> ReadingSection:
    """Reading options; text columns without a header and without declared fields are named c0, c1, ..."""
    told_type = _dataset_type(dataset_type)
    is_csv = dataset_type_of(ReadingSection(dataset_type=told_type), files) == "CsvDataset"
    if not is_csv and (delimiter is not None or not with_header):
        option = "--delimiter" if delimiter is not None else "--no-header"
        raise ConfigError(f"{option} has no effect: {files[0].path} is not CSV")
    separator = _delimiter(delimiter, files)
    declared = _declared(fields)
    if not with_header and not declared:
        num_columns = len(_first_cells(files[0], separator))
        declared = [Field(input_name=f"c{index}") for index in range(num_columns)]
    return ReadingSection(
        dataset_type=told_type,
        input_fields=declared,
        delimiter=separator,
        with_header=with_header,
    )


def files_of(path: str) -> list[DataFile]:
    """The files that a path means."""
    if not path.strip():
        raise DataError("no data path is given")
    return list_files(path)


def _delimiter(delimiter: str | None, files: list[DataFile]) -> str:
    if delimiter is None:
        return "\t" if files[0].suffix == ".tsv" else ","
    character = _ESCAPES.get(delimiter, delimiter)
    if len(character) != 1:
        raise ConfigError(f"--delimiter is {delimiter!r}; columns are separated by one character")
    return character


def _declared(fields: str | None) -> list[Field]:
    try:
        return parse_fields(fields or "")
    except ValueError as error:
        raise ConfigError(f"--fields {error}") from error


def _dataset_type(name: str | None) -> DatasetType | None:
    if name is None:
        return None
    if name not in FORMATS:
        raise ConfigError(f"--dataset-type: there is no '{name}'; {hint(name, FORMATS)}")
    return DatasetType(name)


def _first_cells(file: DataFile, delimiter: str) -> list[str]:
    with closing(TextFile(file)) as source:
        text = source.read(0, _MOST_HEADER_BYTES)
    try:
        lines = text[: text.rfind(b"\n") + 1 or len(text)].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file.path}: is not UTF-8 text; is it CSV?") from error
    return next(csv.reader(lines.splitlines(keepends=True), delimiter=delimiter), [])
