"""The types of CSV columns: declared in the run file, or found from samples across all of each file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.readers.columns import is_usable
from penstock.readers.sections import Field, FieldType
from penstock.readers.text.csv_decode import CsvForm, decode_sample

_SCALAR_TYPES: dict[FieldType, pa.DataType] = {
    FieldType.INT32: pa.int32(),
    FieldType.INT64: pa.int64(),
    FieldType.FLOAT: pa.float32(),
    FieldType.DOUBLE: pa.float64(),
}
_NUMBER_BYTES = 8
_LONG_INTEGER = r"^\s*[+-]?\d{16,}\s*$"
"""Integers that a float64 would round: ids beyond int64 stay text."""


def declared_types(fields: Sequence[Field]) -> dict[str, pa.DataType]:
    """The types that the run file declares. Lists and maps stay text: the features split it."""
    return {
        field.input_name: _SCALAR_TYPES.get(field.input_type, pa.string())
        for field in fields
        if field.input_type is not None
    }


@dataclass(slots=True)
class CsvSample:
    """What the sampled records of the files say."""

    types: dict[str, pa.DataType]
    num_rows: int = 0
    num_bytes: int = 0
    """Of the rows in memory."""
    text_row_bytes: int = 1
    """Of a row as text: the largest mean of a place."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory, with its origin."""
        return max(1, -(-self.num_bytes // self.num_rows)) if self.num_rows else 1


def sample_columns(
    texts: Iterable[tuple[int, bytes]],
    forms: Sequence[CsvForm],
    names: Sequence[str],
    known: Mapping[str, pa.DataType],
) -> CsvSample:
    """The narrowest types that hold every sampled value, text where nothing else does; `known` types stay.

    `texts`: records, with the index of the form that they have.
    """
    sample = CsvSample({name: known.get(name, pa.null()) for name in names})
    for form_index, text in texts:
        _add(sample, text, forms[form_index], known)
    sample.types = {name: _final_type(value_type) for name, value_type in sample.types.items()}
    return sample


def _add(sample: CsvSample, text: bytes, form: CsvForm, known: Mapping[str, pa.DataType]) -> None:
    names = list(sample.types)
    unknown = [name for name in names if name not in known]
    for name, value_type in _types_in(text, form, unknown).items():
        sample.types[name] = join_types(sample.types[name], value_type)
    table = decode_sample(text, form, names, pa.binary())
    fixed = [value_type for value_type in sample.types.values() if not pa.types.is_string(value_type)]
    texts = [name for name in names if pa.types.is_string(sample.types[name])]
    sample.num_rows += table.num_rows
    sample.num_bytes += table.select(texts).nbytes + table.num_rows * (len(fixed) + 1) * _NUMBER_BYTES
    sample.text_row_bytes = max(sample.text_row_bytes, len(text) // max(1, table.num_rows))


def _types_in(text: bytes, form: CsvForm, names: Sequence[str]) -> dict[str, pa.DataType]:
    if not names:
        return {}
    table = decode_sample(text, form, names)
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    floats = [name for name, value_type in types.items() if pa.types.is_floating(value_type)]
    texts = decode_sample(text, form, floats, pa.string()) if floats else None
    for name in floats:
        if texts is not None and pc.any(pc.match_substring_regex(texts[name], _LONG_INTEGER)).as_py():
            types[name] = pa.string()
    return types


def join_types(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """The narrowest type that holds the values of both."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if {first, second} == {pa.int64(), pa.float64()}:
        return pa.float64()
    return pa.string()


def _final_type(value_type: pa.DataType) -> pa.DataType:
    return value_type if is_usable(value_type) else pa.string()
