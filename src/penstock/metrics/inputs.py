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


def as_array(values: Values) -> NDArray[Any]:
    """A NumPy array of the values; a torch tensor may need gradients, be on a device, or be bfloat16."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() and values.itemsize < 4 else values
    return np.asarray(values)


def is_whole(value: object) -> bool:
    """Whether a setting that is typed as a whole number really is one; callers without types may give another."""
    return isinstance(value, int) and not isinstance(value, bool)


def binary_rows(preds: Values, target: Values, owner: str) -> BinaryRows:
    """Probabilities and labels of the rows whose prediction is a number; anything else is a DataError."""
    predictions = _numbers(preds, owner)
    if predictions.ndim == 2 and predictions.shape[1] > 1:
        raise DataError(
            f"{owner}: predictions of {predictions.shape[1]} classes; give it the probability of one, "
            "or use multiclass_auc or accuracy"
        )
    probabilities = _floating(np.ravel(predictions))
    labels = np.ravel(_numbers(target, owner))
    _check_lengths(probabilities, labels, owner)
    is_positive = _checked_labels(labels, owner)
    if _lie_in_range(probabilities):
        return BinaryRows(probabilities, is_positive, 0)
    usable, num_left_out = _usable(~np.isnan(probabilities))
    probabilities, is_positive = probabilities[usable], is_positive[usable]
    _check_range(probabilities, owner)
    return BinaryRows(probabilities, is_positive, num_left_out)


def number_rows(preds: Values, target: Values, owner: str) -> NumberRows:
    """Predicted and true numbers of the rows whose prediction is a number; infinities are numbers."""
    predictions = np.ravel(_numbers(preds, owner)).astype(np.float64)
    labels = np.ravel(_numbers(target, owner)).astype(np.float64)
    _check_lengths(predictions, labels, owner)
    if np.isnan(labels).any():
        raise DataError(f"{owner}: the label of row {int(np.argmax(np.isnan(labels)))} of the batch is NaN")
    usable, num_left_out = _usable(~np.isnan(predictions))
    return NumberRows(predictions[usable], labels[usable], num_left_out)


def class_rows(
    preds: Values, target: Values, owner: str
) -> tuple[NDArray[np.floating[Any]], NDArray[np.intp], int]:
    """Probabilities [rows, classes] and classes of the rows without NaN, and how many rows were left out."""
    probabilities = _matrix(preds, "classes", owner)
    labels = np.ravel(_numbers(target, owner))
    _check_lengths(probabilities, labels, owner)
    num_classes = probabilities.shape[1]
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
    similarities = _matrix(preds, "candidates", owner)
    labels = _numbers(target, owner)
    _check_lengths(similarities, labels, owner)
    if labels.ndim == 2 and labels.shape[1] > 1:
        if labels.shape != similarities.shape:
            raise DataError(f"{owner}: predictions {similarities.shape} for labels {labels.shape}")
        is_relevant = _checked_labels(labels, owner)
    else:
        is_relevant = np.zeros(similarities.shape, dtype=np.bool_)
        is_relevant[:, :1] = True
    usable, num_left_out = _usable(~np.isnan(similarities).any(axis=1))
    return similarities[usable], is_relevant[usable], num_left_out


def _matrix(preds: Values, columns: str, owner: str) -> NDArray[np.floating[Any]]:
    values = _floating(_numbers(preds, owner))
    if values.ndim != 2:
        raise DataError(f"{owner}: predictions of shape {values.shape}; it needs [rows, {columns}]")
    return values


def _numbers(values: Values, owner: str) -> NDArray[Any]:
    array = as_array(values)
    if array.dtype.kind in "USO":
        raise DataError(f"{owner}: predictions and labels are arrays of numbers, not of {array.dtype}")
    return array


def _floating(values: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """As they are in float32 or float64; all others in float64."""
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _usable(is_number: NDArray[np.bool_]) -> tuple[slice | NDArray[np.bool_], int]:
    """An index of the rows to keep, and how many are not kept; all of them without a copy."""
    num_left_out = int(np.count_nonzero(~is_number))
    return (is_number if num_left_out else slice(None)), num_left_out


def _check_lengths(predictions: NDArray[Any], labels: NDArray[Any], owner: str) -> None:
    if len(predictions) != len(labels):
        raise DataError(f"{owner}: {len(predictions)} predictions for {len(labels)} labels")


def _lie_in_range(probabilities: NDArray[np.floating[Any]]) -> bool:
    """Whether all are numbers from 0 to 1; extremes of values with a NaN among them are NaN."""
    return not probabilities.size or bool(probabilities.min() >= 0 and probabilities.max() <= 1)


def _check_range(probabilities: NDArray[np.floating[Any]], owner: str) -> None:
    if not _lie_in_range(probabilities):
        low, high = probabilities.min(), probabilities.max()
        raise DataError(
            f"{owner}: predictions run from {low:g} to {high:g}, outside [0, 1]: these look like logits; "
            "give it probabilities"
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
