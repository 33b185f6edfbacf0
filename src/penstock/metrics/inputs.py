"""What metrics read: arrays from NumPy or torch, checked once."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.metrics.metric import Values


class BinaryRows(NamedTuple):
    """Rows with a probability and a label of 0 or 1."""

    probabilities: NDArray[np.floating[Any]]
    is_positive: NDArray[np.bool_]
    num_left_out: int


def as_array(values: Values) -> NDArray[Any]:
    """A NumPy array of the values; a torch tensor may need gradients, be on a device, or be bfloat16."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() and values.itemsize < 4 else values
    return np.asarray(values)


def binary_rows(preds: Values, target: Values, owner: str) -> BinaryRows:
    """Probabilities and labels of the rows whose prediction is a number; anything else is a DataError."""
    probabilities = np.ravel(as_array(preds))
    labels = np.ravel(as_array(target))
    if len(probabilities) != len(labels):
        raise DataError(f"{owner}: {len(probabilities)} predictions for {len(labels)} labels")
    if probabilities.dtype not in (np.float32, np.float64):
        probabilities = probabilities.astype(np.float64)
    is_positive = _checked_labels(labels, owner)
    missing = np.isnan(probabilities)
    num_left_out = int(np.count_nonzero(missing))
    if num_left_out:
        probabilities, is_positive = probabilities[~missing], is_positive[~missing]
    _check_range(probabilities, owner)
    return BinaryRows(probabilities, is_positive, num_left_out)


def _check_range(probabilities: NDArray[np.floating[Any]], owner: str) -> None:
    if not len(probabilities):
        return
    low, high = probabilities.min(), probabilities.max()
    if low < 0 or high > 1:
        raise DataError(
            f"{owner}: predictions run from {low:g} to {high:g}, outside [0, 1]: these look like logits; "
            "give it probabilities"
        )


def _checked_labels(labels: NDArray[Any], owner: str) -> NDArray[np.bool_]:
    if labels.dtype == np.bool_:
        return labels
    is_positive = labels == 1
    wrong = ~(is_positive | (labels == 0))
    if wrong.any():
        raise DataError(f"{owner}: the label {labels[wrong][0]} is neither 0 nor 1")
    return np.asarray(is_positive, dtype=np.bool_)
