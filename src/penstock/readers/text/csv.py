"""CSV files, plain or compressed."""

import csv
from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB
from penstock.readers.columns import project
from penstock.readers.files import DataFile
from penstock.readers.sections import Field, ReadingSection
from penstock.readers.survey import Survey, Wanted
from penstock.readers.text.csv_decode import CsvForm
from penstock.readers.text.csv_parser import CsvParser
from penstock.readers.text.csv_types import declared_types, sample_columns
from penstock.readers.text.framing import CsvRecords
from penstock.readers.text.record_index import index_records
from penstock.readers.text.sample import sample_texts
from penstock.readers.text.source import BYTE_ORDER_MARK, TextFile
from penstock.readers.text.survey import TextSurvey

_MOST_HEADER_BYTES = MIB


def survey_csv(reading: ReadingSection, files: Sequence[DataFile], wanted: Wanted) -> Survey:
    """Read headers, count records, and find the types that are not declared from samples."""
    if not reading.delimiter.isascii():
        raise ConfigError.at("data_config.delimiter", f"is '{reading.delimiter}'; use an ASCII character")
    fields = reading.resolved_input_fields()
    framing = CsvRecords(reading.delimiter)
    forms = [read_form(file, reading, fields) for file in files]
    columns = forms[0].names if wanted.columns is None else wanted.columns
    for form in forms:
        project(pa.schema([(name, pa.string()) for name in form.names]), columns, form.path)
    indexes = [
        index_records(file, form.data_start, framing, wanted.index_dir)
        for file, form in zip(files, forms, strict=True)
    ]
    known = dict.fromkeys(wanted.text_columns, pa.string()) | declared_types(fields)
    sample = sample_columns(sample_texts(files, indexes, framing), forms, columns, known)
    schema = pa.schema([(name, sample.types[name]) for name in columns])
    parser = CsvParser(tuple(forms), schema, wanted.quarantine)
    return TextSurvey(tuple(files), tuple(indexes), framing, parser, sample.row_bytes, sample.text_row_bytes)


def read_form(file: DataFile, reading: ReadingSection, fields: Sequence[Field]) -> CsvForm:
    """How a file is laid out, from its header or from the declared columns."""
    first, start, end = _first_record(file, reading.delimiter)
    try:
        cells = next(csv.reader([first.decode()], delimiter=reading.delimiter), [])
    except UnicodeDecodeError as error:
        raise DataError(f"{file.path}: is not UTF-8 text; is it CSV?") from error
    if reading.with_header:
        return CsvForm(file.path, tuple(cells), end, reading.delimiter)
    names = tuple(field.input_name for field in fields)
    if not names:
        raise ConfigError.at(
            "data_config.input_fields", f"must name the columns of {file.path}, unless with_header is true"
        )
    if len(cells) != len(names):
        raise DataError(
            f"{file.path}: the first row has {len(cells)} columns but data_config.input_fields names "
            f"{len(names)}; are delimiter and with_header right?"
        )
    return CsvForm(file.path, names, start, reading.delimiter)


def _first_record(file: DataFile, delimiter: str) -> tuple[bytes, int, int]:
    """The first record, without a byte order mark and blank lines before it, and where it begins and ends."""
    with closing(TextFile(file)) as source:
        text = source.read(0, _MOST_HEADER_BYTES)
    mark_bytes = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    text = text[mark_bytes:]
    starts = [*CsvRecords(delimiter).starts(text).tolist(), len(text), len(text)]
    start, end = starts[:2]
    return text[start:end], mark_bytes + start, mark_bytes + end
