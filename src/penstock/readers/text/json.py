"""JSON lines, plain or compressed: one object per line."""

from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.columns import project
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Survey, Wanted
from penstock.readers.text.framing import Lines
from penstock.readers.text.json_parser import JsonParser
from penstock.readers.text.json_sample import JsonSample, sample_lines
from penstock.readers.text.json_types import declared_types, json_schemas
from penstock.readers.text.record_index import index_records
from penstock.readers.text.sample import sample_texts
from penstock.readers.text.source import BYTE_ORDER_MARK, TextFile
from penstock.readers.text.survey import TextSurvey

_START_BYTES = 4 * KIB


def survey_json(reading: ReadingSection, files: Sequence[DataFile], wanted: Wanted) -> Survey:
    """Count lines, and find keys and the types that are not declared from samples."""
    framing = Lines()
    indexes = [index_records(file, _data_start(file), framing, wanted.index_dir) for file in files]
    sample = sample_lines(text for _, text in sample_texts(files, indexes, framing))
    declared = declared_types(reading.resolved_input_fields())
    names = _names(sample, [*declared], wanted.columns)
    given, read = json_schemas(names, sample.types, declared, wanted.text_columns)
    columns = project(given, wanted.columns, files[0].path)
    parser = JsonParser(
        tuple(file.path for file in files),
        columns,
        pa.schema([read.field(name) for name in columns.names]),
        wanted.quarantine,
    )
    return TextSurvey(
        tuple(files),
        tuple(indexes),
        framing,
        parser,
        sample.row_bytes(columns.names),
        sample.text_row_bytes,
    )


def _names(sample: JsonSample, declared: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The keys that were met or declared; files without a line may have any."""
    known = dict.fromkeys([*sample.types, *declared])
    if not sample.num_rows:
        known |= dict.fromkeys(wanted or [])
    return list(known)


def _data_start(file: DataFile) -> int:
    """Where the first line begins."""
    with closing(TextFile(file)) as source:
        text = source.read(0, _START_BYTES)
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    if text[start:].lstrip().startswith(b"["):
        raise DataError(
            f"{file.path}: is one JSON array, not JSON lines; write one object per line (jq -c '.[]' does it)"
        )
    return start
