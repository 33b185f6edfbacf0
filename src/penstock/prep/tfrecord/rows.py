"""What can be written -> tables that all have the same columns."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.prep.tfrecord.columns import check_types
from penstock.readers.origin import ROW_COLUMN

Rows = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch] | Mapping[str, Any]


def tables_of(rows: Rows) -> Iterator[pa.Table]:
    """The rows, as they come; each table has the columns of the first, without the origin of rows."""
    if isinstance(rows, Mapping):
        rows = table_of_arrays(rows)
    schema: pa.Schema | None = None
    for part in [rows] if isinstance(rows, pa.Table | pa.RecordBatch) else rows:
        table = _without_origin(part)
        if schema is None:
            schema = table.schema
            check_types(schema)
        elif not table.schema.equals(schema):
            raise DataError(
                f"the columns change from one batch to the next, from\n{schema}\nto\n{table.schema}"
            )
        yield table


def _without_origin(part: pa.Table | pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part
    return table.drop_columns(ROW_COLUMN) if ROW_COLUMN in table.schema.names else table


def table_of_arrays(arrays: Mapping[str, Any]) -> pa.Table:
    """NumPy arrays as columns; one of two dimensions has a list of fixed length in each row."""
    columns = {name: _column(name, np.asarray(values)) for name, values in arrays.items()}
    names = list(columns)
    for name in names[1:]:
        if len(columns[name]) != len(columns[names[0]]):
            raise DataError(
                f"'{names[0]}' has {len(columns[names[0]])} rows but '{name}' has {len(columns[name])}; "
                "all arrays need as many"
            )
    return pa.table(columns)


def _column(name: str, values: np.ndarray[Any, Any]) -> Any:
    if values.ndim not in (1, 2):
        raise DataError.at(f"has {values.ndim} dimensions; reshape it to rows and values", column=name)
    try:
        flat = pa.array(values.reshape(-1))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError.at(
            f"has type {values.dtype}, which cannot be written: {error}", column=name
        ) from error
    return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
