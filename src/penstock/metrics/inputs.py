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


class NumberRows(NamedTuple):
    """Rows with a predicted and a true number."""

    predictions: NDArray[np.float64]
    labels: NDArray[np.float64]
    num_left_out: int


def as_array(values: Values, owner: str | None = None) -> NDArray[Any]:
    """A NumPy array of the values; with `owner`, the name of a metric, anything but numbers is refused.

    A torch tensor may need gradients, be on a device, or be bfloat16.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() and values.itemsize < 4 else values
    array = np.asarray(values)
    if owner is not None and array.dtype.kind in "USO":
        raise DataError(f"{owner}: predictions and labels are arrays of numbers, not of {array.dtype}")
    return array


def binary_rows(preds: Values, target: Values, owner: str) -> BinaryRows:
    """Probabilities and labels of the rows whose prediction is a number; anything else is a DataError.

    Probabilities stay float32 or float64; all others become float64.
    """
    predictions, labels = as_array(preds, owner), np.ravel(as_array(target, owner))
    if predictions.ndim == 2 and predictions.shape[1] > 1:
        raise DataError(
            f"{owner}: predictions of {predictions.shape[1]} classes; give it the probability of one, "
            "or use multiclass_auc or accuracy"
        )
    probabilities = np.ravel(predictions)
    if probabilities.dtype not in (np.float32, np.float64):
        probabilities = probabilities.astype(np.float64)
    if len(probabilities) != len(labels):
        raise DataError(f"{owner}: {len(probabilities)} predictions for {len(labels)} labels")
    is_positive = _checked_labels(labels, owner)
    # Extremes of values with a NaN among them are NaN, and then this is false.
    if not len(probabilities) or (probabilities.min() >= 0 and probabilities.max() <= 1):
        return BinaryRows(probabilities, is_positive, 0)
    usable, num_left_out = _usable(~np.isnan(probabilities))
    probabilities, is_positive = probabilities[usable], is_positive[usable]
    _check_range(probabilities, owner)
    return BinaryRows(probabilities, is_positive, num_left_out)


def number_rows(preds: Values, target: Values, owner: str) -> NumberRows:
    """Predicted and true numbers of the rows whose prediction is a number; infinities are numbers."""
    predictions = np.ravel(as_array(preds, owner)).astype(np.float64)
    labels = np.ravel(as_array(target, owner)).astype(np.float64)
    if len(predictions) != len(labels):
        raise DataError(f"{owner}: {len(predictions)} predictions for {len(labels)} labels")
    if np.isnan(labels).any():
        raise DataError(f"{owner}: the label of row {int(np.argmax(np.isnan(labels)))} of the batch is NaN")
    usable, num_left_out = _usable(~np.isnan(predictions))
    return NumberRows(predictions[usable], labels[usable], num_left_out)


def class_rows(
    preds: Values, target: Values, owner: str
) -> tuple[NDArray[np.floating[Any]], NDArray[np.intp], int]:
    """Probabilities [rows, classes] and classes of the rows without NaN, and how many rows were left out."""
    probabilities, labels = _matrix_rows(preds, target, "classes", owner)
    labels, num_classes = np.ravel(labels), probabilities.shape[1]
    wrong = ~((labels >= 0) & (labels < num_classes) & (labels == np.floor(labels)))
    if wrong.any():
        raise DataError(f"{owner}: the label {labels[wrong][0]} is no class from 0 to {num_classes - 1}")
    usable, num_left_out = _usable(~np.isnan(probabilities).any(axis=1))
    probabilities = probabilities[usable]
    _check_range(probabilities, owner)
    return probabilities, labels[usable].astype(np.intp), num_left_out


def candidate_rows(
    preds: Values, target: Values, owner: str
) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_], int]:
    """Similarities [rows, candidates] of the rows without NaN, which candidates are right, and rows left out.

    A target of the same shape says with 0 and 1 which candidates are right; with any other it is the first.
    """
    similarities, labels = _matrix_rows(preds, target, "candidates", owner)
    if labels.ndim == 2 and labels.shape[1] > 1:
        if labels.shape != similarities.shape:
            raise DataError(f"{owner}: predictions {similarities.shape} for labels {labels.shape}")
        is_relevant = _checked_labels(labels, owner)
    else:
        is_relevant = np.zeros(similarities.shape, dtype=np.bool_)
        is_relevant[:, :1] = True
    usable, num_left_out = _usable(~np.isnan(similarities).any(axis=1))
    return similarities[usable], is_relevant[usable], num_left_out


def _matrix_rows(
    preds: Values, target: Values, columns: str, owner: str
) -> tuple[NDArray[np.floating[Any]], NDArray[Any]]:
    """Predictions [rows, columns] in float32 or float64, and labels of as many rows."""
    predictions, labels = as_array(preds, owner), as_array(target, owner)
    if predictions.ndim != 2:
        raise DataError(f"{owner}: predictions of shape {predictions.shape}; it needs [rows, {columns}]")
    if len(predictions) != len(labels):
        raise DataError(f"{owner}: {len(predictions)} predictions for {len(labels)} labels")
    if predictions.dtype not in (np.float32, np.float64):
        predictions = predictions.astype(np.float64)
    return predictions, labels


def _usable(is_number: NDArray[np.bool_]) -> tuple[slice | NDArray[np.bool_], int]:
    """An index of the rows to keep, and how many are not kept; all of them without a copy."""
    num_left_out = int(np.count_nonzero(~is_number))
    return (is_number if num_left_out else slice(None)), num_left_out


def _check_range(probabilities: NDArray[np.floating[Any]], owner: str) -> None:
    if probabilities.size and not (probabilities.min() >= 0 and probabilities.max() <= 1):
        raise DataError(
            f"{owner}: predictions run from {probabilities.min():g} to {probabilities.max():g}, outside [0, 1]: "
            "these look like logits; give it probabilities"
        )


def _checked_labels(labels: NDArray[Any], owner: str) -> NDArray[np.bool_]:
    if labels.dtype == np.bool_:
        return labels
    is_positive: NDArray[np.bool_] = labels == 1
    is_negative: NDArray[np.bool_] = labels == 0
    if np.count_nonzero(is_positive) + np.count_nonzero(is_negative) < labels.size:
        wrong = ~(is_positive | is_negative)
        raise DataError(f"{owner}: the label {labels[wrong][0]} is neither 0 nor 1")
    return is_positive
