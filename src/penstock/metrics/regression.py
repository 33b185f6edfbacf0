"""How far predicted numbers are from the true ones."""

import math

import numpy as np

from penstock.metrics.inputs import number_rows
from penstock.metrics.metric import Values
from penstock.metrics.sums import RowMean, RowValues


class MeanAbsoluteError(RowMean):
    name = "mean_absolute_error"

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        rows = number_rows(preds, target, self.name)
        return RowValues(np.abs(rows.predictions - rows.labels), rows.num_left_out)


class MeanSquaredError(RowMean):
    name = "mean_squared_error"

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        rows = number_rows(preds, target, self.name)
        return RowValues(np.square(rows.predictions - rows.labels), rows.num_left_out)


class RootMeanSquaredError(MeanSquaredError):
    name = "root_mean_squared_error"

    def _value(self) -> float:
        return math.sqrt(super()._value())
