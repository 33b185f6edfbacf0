"""Labels and sample weights: columns that the loss needs, and that must be there in every row."""

import numpy as np
import pyarrow as pa

from penstock.features.arrow_input import read_cells
from penstock.features.bad_value import BadValue
from penstock.features.columns import BoolArray, Float32Array, NumberArray
from penstock.features.text import Text


def read_label(batch: pa.RecordBatch | pa.Table, column: str, binary: bool = False) -> NumberArray:
    """Integers and booleans as int64, other numbers as float32. A null or NaN is an error.

    `binary`: so is what lies outside 0 to 1.
    """
    values = _one_number_per_row(batch, column, "label")
    if binary:
        _refuse((values < 0) | (values > 1), values, column, "is outside 0 to 1, the labels of a binary loss")
    if values.dtype == np.int64:
        return values
    _refuse(np.isnan(values), values, column, "is no label; every row needs one")
    return values.astype(np.float32, copy=False)


def read_sample_weight(batch: pa.RecordBatch | pa.Table, column: str) -> Float32Array:
    """Weights as float32: finite and not negative."""
    weights = _one_number_per_row(batch, column, "sample weight").astype(np.float32, copy=False)
    _refuse(~(np.isfinite(weights) & (weights >= 0)), weights, column, "is no sample weight: finite and >= 0")
    return weights


def _one_number_per_row(batch: pa.RecordBatch | pa.Table, column: str, role: str) -> NumberArray:
    kind = batch.schema.field(column).type
    if pa.types.is_nested(kind):
        raise BadValue(column, None, None, f"is a {kind}; a {role} that is a list is not available yet")
    cells = read_cells(batch, column)
    if isinstance(cells.values, Text):
        raise BadValue(column, None, None, f"is a {kind}; a {role} is a number")
    missing = cells.lengths == 0
    if missing.any():
        raise BadValue(column, int(np.argmax(missing)), None, f"is null; every row needs a {role}")
    return cells.values


def _refuse(wrong: BoolArray, values: NumberArray, column: str, problem: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadValue(column, row, values[row].item(), problem)
