"""Mean negative log likelihood of binary labels."""

import numpy as np

from penstock.metrics.inputs import binary_rows
from penstock.metrics.metric import Values
from penstock.metrics.sums import RowMean, RowValues


class LogLoss(RowMean):
    """Mean of -log(probability given to what happened).

    Probabilities are first moved away from 0 and 1 by the precision of their type (1.2e-7 for float32), so
    that one wrong row of full confidence costs 16, not infinity.
    """

    name = "log_loss"

    def _row_values(self, preds: Values, target: Values) -> RowValues:
        rows = binary_rows(preds, target, self.name)
        smallest = float(np.finfo(rows.probabilities.dtype).eps)
        probabilities = np.clip(rows.probabilities.astype(np.float64), smallest, 1.0 - smallest)
        likelihoods = np.where(rows.is_positive, probabilities, 1.0 - probabilities)
        return RowValues(-np.log(likelihoods), rows.num_left_out)
