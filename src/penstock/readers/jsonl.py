"""JSON lines, plain or compressed: one object per line.

Arrow parses the lines. Where it cannot, they are read one by one, to find what is wrong. Arrow's JSON reader knows no
maps and reads no number as a string, so a column may be read as another type than it is given out as.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.columns import declared_types, join_types, project
from penstock.readers.files import DataFile
from penstock.readers.indexed_files import (
    Framing,
    ScannedRecords,
    index_text,
    line_starts,
    sample_texts,
)
from penstock.readers.order import Int64Array
from penstock.readers.scan import ReadRequest, ScannedFiles
from penstock.readers.sections import ReadingSection
from penstock.readers.text_file import BYTE_ORDER_MARK, TextFile, as_text_files, not_utf8

_START_BYTES = 4 * KIB
_COPIES_OF_TEXT, _COPIES_OF_LISTS = 3, 8
"""Bytes that a byte of text takes at most; a value of a list may be two characters."""
_VALUE_BYTES = 16  # of each value: as Arrow's parser holds it, and in a column
_NUMBER_AS_STRING_BYTES = 24
_SAMPLED_VALUE_BYTES = 8
"""Of a number, or of the offset of a string or a list with what it needs besides."""
_END_OF_ASCII = 0x80
_LINE_FEED, _BRACE, _SPACE = b"\n{ "
_INT64_END = 1 << 63
_FIXED = (pa.bool_(), pa.int64(), pa.uint64(), pa.float64())
_ADVICE = "correct it, or declare another type in data_config.input_fields"


class Lines(Framing):
    """Records that are lines, as in JSON lines: not those of nothing but spaces."""

    name = "lines"

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        end = len(text) if is_all else text.rfind(b"\n") + 1
        return end, len(self.starts(memoryview(text)[:end]))

    def starts(self, text: bytes | memoryview) -> Int64Array:
        characters = np.frombuffer(text, np.uint8)
        starts = line_starts(np.flatnonzero(characters == _LINE_FEED), len(characters))
        if (characters[starts] == _BRACE).all():
            return starts
        visible = np.flatnonzero(characters > _SPACE)
        first_visible = np.append(visible, len(characters))[np.searchsorted(visible, starts)]
        return starts[first_visible < np.append(starts, len(characters))[1:]]


def scan_json(reading: ReadingSection, files: Sequence[DataFile], wanted: ReadRequest) -> ScannedFiles:
    framing = Lines()
    files = as_text_files(files, reading.encoding)
    indexes = index_text(files, map(_data_start, files), framing, wanted.index_dir)
    sample = _sample_lines(text for _, text in sample_texts(files, indexes, framing))
    declared = declared_types(reading)
    names = dict.fromkeys([*sample.types, *declared])
    if not sample.num_rows:  # files without a line may have any key
        names |= dict.fromkeys(wanted.columns or [])
    found = {name: sample.types.get(name, pa.null()) for name in names}
    types = {
        name: declared[name] if name in declared else _given_type(found[name], name in wanted.text_columns)
        for name in names
    }
    columns = project(pa.schema(list(types.items())), wanted.columns, files[0].path)
    read_columns = pa.schema([(name, _read_type(types[name], found[name])) for name in columns.names])
    row_bytes = 1
    if sample.num_rows:
        content_bytes = sum(sample.content_bytes.get(name, 0) for name in columns.names)
        row_bytes = _SAMPLED_VALUE_BYTES * (len(columns) + 1) + -(-content_bytes // sample.num_rows)
    # The text, its values as Arrow's parser holds them, and the columns.
    has_lists = any(pa.types.is_nested(value_type) for value_type in columns.types)
    num_cast = sum(read_columns.field(field.name).type != field.type for field in columns)
    record_bytes = _VALUE_BYTES * (len(columns) + 1) + _NUMBER_AS_STRING_BYTES * num_cast
    return ScannedJson(
        files=tuple(files),
        columns=columns,
        indexes=indexes,
        framing=framing,
        sampled_row_bytes=row_bytes,
        text_row_bytes=sample.text_row_bytes,
        costs=(_COPIES_OF_LISTS if has_lists else _COPIES_OF_TEXT, record_bytes),
        quarantine=wanted.quarantine,
        read_columns=read_columns,
    )


def _data_start(file: DataFile) -> int:
    with closing(TextFile(file)) as source:
        text = source.read(0, _START_BYTES)
    start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    if text[start:].lstrip().startswith(b"["):
        raise DataError(
            f"{file.path}: is one JSON array, not JSON lines; write one object per line (jq -c '.[]' does it)"
        )
    return start


def _value_type(value: object) -> Any:
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if -_INT64_END <= value < _INT64_END else pa.uint64()
        case float():
            return pa.float64()
        case list():
            return pa.list_(reduce(join_types, map(_value_type, value), pa.null()))
        case dict():
            return pa.struct([(key, _value_type(item)) for key, item in value.items()])
        case _:
            return pa.string()


def _given_type(found: Any, is_string: bool) -> Any:
    """What has no value at all is a string, as are integers beyond int64, which no number would hold exactly."""
    if pa.types.is_list(found):
        return pa.list_(_given_type(found.value_type, is_string))
    if pa.types.is_null(found) or found == pa.uint64() or (is_string and found in _FIXED):
        return pa.string()
    return found


def _read_type(given: Any, found: Any) -> Any:
    """The type as which Arrow reads what is given out as another: maps as lists of pairs, numbers as numbers."""
    if pa.types.is_map(given):
        return pa.list_(pa.struct([("key", given.key_type), ("value", given.item_type)]))
    if pa.types.is_list(given):
        item = found.value_type if pa.types.is_list(found) else pa.null()
        return pa.list_(_read_type(given.value_type, item))
    return found if pa.types.is_string(given) and found in _FIXED else given


class _Sample(NamedTuple):
    types: dict[str, Any]
    """The narrowest type that holds every sampled value, by key, in the order in which keys were met."""
    content_bytes: dict[str, int]  # of strings and lists, by key
    num_rows: int
    text_row_bytes: int


def _sample_lines(texts: Iterable[bytes]) -> _Sample:
    """Look at some lines; those that cannot be read are left for the reader to report."""
    types: dict[str, Any] = {}
    content_bytes: dict[str, int] = {}
    total_rows, text_row_bytes = 0, 1
    for text in texts:
        num_rows = 0
        for line in text.split(b"\n"):
            try:
                found = json.loads(line) if line.strip() else None
            except ValueError:
                continue
            if isinstance(found, dict):
                num_rows += 1
                for key, value in found.items():
                    types[key] = join_types(types.get(key, pa.null()), _value_type(value))
                    content_bytes[key] = content_bytes.get(key, 0) + _content_bytes(value)
        total_rows += num_rows
        text_row_bytes = max(text_row_bytes, len(text) // max(1, num_rows))
    return _Sample(types, content_bytes, total_rows, text_row_bytes)


def _content_bytes(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode(errors="replace"))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(_SAMPLED_VALUE_BYTES + _content_bytes(item) for item in items)


@dataclass(kw_only=True, eq=False)
class ScannedJson(ScannedRecords):
    """A bad value is an error, or it is null and its line goes to the quarantine."""

    read_columns: pa.Schema

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        rows = self._read(text)
        if rows is not None and rows.num_rows == num_records:
            return rows
        starts = [*self.framing.starts(text).tolist(), len(text)]
        values: dict[str, list[Any]] = {name: [] for name in self.columns.names}
        for record in range(len(starts) - 1):
            line = bytes(text[starts[record] : starts[record + 1]]).strip()
            found, bad = _read_line(line, self.columns)
            for name, column in values.items():
                column.append(found.get(name))
            if bad is not None:
                self.refuse(file_index, first_row + record, **bad, content=line.decode(errors="replace"))
        return pa.RecordBatch.from_pydict(values, schema=self.columns)

    def _read(self, text: memoryview) -> pa.RecordBatch | None:
        """All lines at once; None where Arrow cannot read them, or would read what is not UTF-8 without a word."""
        try:
            if np.frombuffer(text, np.uint8).max() >= _END_OF_ASCII:
                str(text, "utf-8")
            table = pyarrow.json.read_json(
                pa.BufferReader(pa.py_buffer(text)),  # type: ignore[arg-type]
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=self.read_columns, unexpected_field_behavior="ignore"
                ),
            )
            rows = table.combine_chunks().to_batches()[0]
            columns = [_as_given(*pair) for pair in zip(rows.columns, self.columns.types, strict=True)]
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None
        return pa.RecordBatch.from_arrays(columns, schema=self.columns)


def _as_given(column: Any, given_type: Any) -> Any:
    if column.type == given_type:
        return column
    if not pa.types.is_map(given_type):
        return column.cast(given_type)
    pairs = column.values
    if pairs.null_count or pairs.field("key").null_count:
        raise pa.ArrowInvalid("a key of a map is null")
    return pa.Array.from_buffers(given_type, len(column), column.buffers()[:2], children=[pairs])


def _read_line(line: bytes, columns: pa.Schema) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The values of a line that can be read, and what is wrong with the first that cannot."""
    try:
        found = json.loads(line)
    except UnicodeDecodeError:
        return {}, {"problem": not_utf8(line)}
    except json.JSONDecodeError as error:
        return {}, {"problem": f"is not JSON: {error.msg}: column {error.colno} of the line"}
    if not isinstance(found, dict | None):
        return {}, {"problem": "is not a JSON object; every line must be one"}
    values: dict[str, Any] = {}
    bad: dict[str, Any] | None = None
    for column in columns:
        value = (found or {}).get(column.name)
        try:
            values[column.name] = _convert(value, column.type)
        except ValueError as problem:
            bad = bad or {"problem": f"{problem}; {_ADVICE}", "column": column.name, "value": value}
    return values, bad


def _convert(value: object, given_type: Any) -> Any:
    """The value as `pa.array` takes it for the type; ValueError where it does not fit."""
    types = pa.types
    match value:
        case None:
            return None
        case _ if types.is_string(given_type):
            return _as_string(value)
        case list() if types.is_map(given_type):
            for pair in value:
                if not isinstance(pair, dict) or pair.get("key") is None:
                    raise ValueError('has an entry that is not {"key": ..., "value": ...}')
            keys = [_convert(pair["key"], given_type.key_type) for pair in value]
            items = [_convert(pair.get("value"), given_type.item_type) for pair in value]
            return list(zip(keys, items, strict=True))
        case list() if types.is_list(given_type):
            return [_convert(item, given_type.value_type) for item in value]
        case dict() if types.is_struct(given_type):
            return {field.name: _convert(value.get(field.name), field.type) for field in given_type}
        case bool():
            if types.is_boolean(given_type):
                return value
        case int() if types.is_integer(given_type):
            end = 1 << (given_type.bit_width - 1)
            if not -end <= value < end:
                raise ValueError(f"is too large for {given_type}")
            return value
        case int() | float() if types.is_floating(given_type):
            return float(value)
    how = ', which is written as [{"key": ..., "value": ...}, ...]' if types.is_map(given_type) else ""
    raise ValueError(f"is not {given_type}{how}")


def _as_string(value: object) -> str:
    """A string as it is; anything else as it is written."""
    if isinstance(value, str):
        value.encode()  # lone surrogates are no string
        return value
    return (
        str(pa.scalar(value).cast(pa.string()))
        if isinstance(value, float)
        else json.dumps(value, ensure_ascii=False)
    )
