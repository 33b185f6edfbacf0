"""Samples as Arrow columns: one value per sample, or a list of fixed size; the bytes are taken as they are."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.store.merge.reading import Rows
from penstock.store.schema import ArraySpec, StoreSchema


def arrow_schema(schema: StoreSchema) -> pa.Schema:
    """Columns with the names of the arrays."""
    return pa.schema([pa.field(spec.name, _type(spec), nullable=False) for spec in schema.arrays])


def record_batch(schema: StoreSchema, columns: Mapping[str, Rows]) -> pa.RecordBatch:
    """Samples, given as bytes, in the order of the schema."""
    arrays = [_array(spec, columns[spec.name]) for spec in schema.arrays]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def _type(spec: ArraySpec) -> Any:
    value_type = _value_type(spec)
    if spec.width is None:
        return value_type
    return pa.list_(pa.field("item", value_type, nullable=False), spec.width)


def _value_type(spec: ArraySpec) -> Any:
    if spec.dtype.kind not in "fiub":
        raise DataError(
            f"array '{spec.name}' is {spec}, which Parquet and Arrow files do not hold here; merge to npy"
        )
    return pa.from_numpy_dtype(spec.dtype.newbyteorder("="))


def _array(spec: ArraySpec, rows: Rows) -> Any:
    values = rows.reshape(-1).view(spec.dtype).astype(spec.dtype.newbyteorder("="), copy=False)
    if spec.width is None:
        return pa.array(values)
    flat = pa.array(values)
    return (
        pa.FixedSizeListArray.from_arrays(flat, type=_type(spec))
        if spec.width
        else _empty_lists(spec, len(rows))
    )


def _empty_lists(spec: ArraySpec, count: int) -> Any:
    return pa.array(np.empty((count, 0), spec.dtype).tolist(), _type(spec))
