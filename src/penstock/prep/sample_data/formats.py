"""How rows become files: Parquet with row groups of a given size, or CSV with one header line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from penstock.config.registry import Registry
from penstock.prep.sample_data.arrow_columns import Column

MULTI_VALUE_SEPARATOR = "\x1d"
SEQUENCE_SEPARATOR = ";"
WEIGHT_SEPARATOR = ":"

_SEQUENCE_SUFFIX = "_seq"
_INCREASING_COLUMNS = ("event_time", "click_time_seq")
"""Columns that hardly ever repeat a value: differences are stored instead of a dictionary."""


class WriteFile(Protocol):
    """Writes one file from tables, each of which is a row group where the format has such a thing."""

    def __call__(self, path: Path, tables: Iterable[pa.Table]) -> None: ...


def write_parquet(path: Path, tables: Iterable[pa.Table]) -> None:
    """One row group per table. Words are dictionary-encoded here, but read back as plain strings."""
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            if writer is None:
                writer = _open_parquet(path, table.schema)
            writer.write_table(table, row_group_size=table.num_rows)
    finally:
        if writer is not None:
            writer.close()


def _open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    increasing = {
        f"{name}.list.element" if pa.types.is_list(schema.field(name).type) else name
        for name in _INCREASING_COLUMNS
        if name in schema.names
    }
    repeating = [name for name in schema.names if name not in _INCREASING_COLUMNS]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=cast(Any, repeating),  # the stubs know only bool
        column_encoding=dict.fromkeys(increasing, "DELTA_BINARY_PACKED") or None,
        store_schema=False,
    )


def write_csv(path: Path, tables: Iterable[pa.Table]) -> None:
    """Lists and maps become text, nulls become empty."""
    writer: pyarrow.csv.CSVWriter | None = None
    try:
        for table in tables:
            flat = pa.table({name: _as_text(name, table.column(name)) for name in table.column_names})
            if writer is None:
                writer = pyarrow.csv.CSVWriter(path, flat.schema)
            writer.write_table(flat)
    finally:
        if writer is not None:
            writer.close()


def _as_text(name: str, column: "pa.ChunkedArray[Any]") -> "pa.ChunkedArray[Any]":
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    if pa.types.is_map(column.type):
        return pa.chunked_array([_join_map(chunk) for chunk in column.chunks], pa.string())
    if pa.types.is_list(column.type):
        separator = SEQUENCE_SEPARATOR if name.endswith(_SEQUENCE_SUFFIX) else MULTI_VALUE_SEPARATOR
        return cast("pa.ChunkedArray[Any]", pc.binary_join(column.cast(pa.list_(pa.string())), separator))
    return column


def _join_map(maps: Any) -> Column:
    """{"music": 0.5, "art": 1} -> "music:0.5" and "art:1" joined."""
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    entries = pc.binary_join_element_wise(
        maps.keys.slice(first, last - first),
        maps.items.slice(first, last - first).cast(pa.string()),
        WEIGHT_SEPARATOR,
    )
    offsets = pc.subtract(maps.offsets, first)
    return cast(Column, pc.binary_join(pa.ListArray.from_arrays(offsets, entries), MULTI_VALUE_SEPARATOR))


FORMATS: Registry[WriteFile] = Registry("format of sample data")
"""Name (also the extension of the files) -> the function that writes one."""
FORMATS.register("parquet")(write_parquet)
FORMATS.register("csv")(write_csv)
