"""Samples as Arrow columns: one value per sample, or a list of fixed size; the bytes are taken as they are."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.store.merge.source.reading import Rows
from penstock.store.schema import ArraySpec, StoreSchema


def check_types(schema: StoreSchema, target: str) -> None:
    """Refuse arrays that a target cannot hold, before anything is written."""
    for spec in schema.arrays:
        try:
            _type(spec)
        except (pa.ArrowNotImplementedError, ValueError) as error:
            raise _refused(spec, target) from error
        if target == "parquet" and spec.width == 0:
            raise _refused(spec, target)


def _refused(spec: ArraySpec, target: str) -> DataError:
    return DataError(
        f"array '{spec.name}' is {spec}, which target {target} does not hold; leave it out, or merge to npy"
    )


def arrow_schema(schema: StoreSchema) -> pa.Schema:
    """Columns with the names of the arrays."""
    return pa.schema([pa.field(spec.name, _type(spec), nullable=False) for spec in schema.arrays])


def record_batch(schema: StoreSchema, columns: Mapping[str, Rows]) -> pa.RecordBatch:
    """Samples, given as bytes, in the order of the schema."""
    arrays = [_array(spec, columns[spec.name]) for spec in schema.arrays]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))


def _type(spec: ArraySpec) -> Any:
    if spec.dtype.kind not in "fiub":
        raise ValueError(f"{spec.dtype} is no number")
    value_type: Any = pa.from_numpy_dtype(spec.dtype.newbyteorder("="))
    if spec.width is None:
        return value_type
    return pa.list_(pa.field("item", value_type, nullable=False), spec.width)


def _array(spec: ArraySpec, rows: Rows) -> Any:
    if spec.width == 0:
        return pa.array([[]] * len(rows), _type(spec))
    values = pa.array(rows.reshape(-1).view(spec.dtype).astype(spec.dtype.newbyteorder("="), copy=False))
    return values if spec.width is None else pa.FixedSizeListArray.from_arrays(values, type=_type(spec))
