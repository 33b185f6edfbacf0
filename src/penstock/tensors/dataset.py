"""NumPy arrays as tensors, in memory of their own: what a model writes into never reaches the data."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.data.arrow_numpy import Ragged


def tensors_of(columns: dict[str, Any]) -> dict[str, Any]:
    """A batch or a row as tensors.

    Times become integers, in their own unit; texts have no tensors and stay Python texts, in a list; lists of different
    lengths become one nested tensor of jagged layout.
    """
    return {name: tensor_of(value) for name, value in columns.items()}


def tensor_of(value: Any) -> Any:
    """One column, or one value of a row."""
    if isinstance(value, Ragged):
        return _jagged(value)
    if isinstance(value, str | bytes) or value is None:
        return value
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return array.tolist()
    return torch.from_numpy(_own(array))


def _own(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that can be written to, of a type that torch has."""
    if array.dtype.kind in "Mm":
        array = array.view(np.int64) if array.ndim else array.astype(np.int64)
    return np.array(array)


def _jagged(lists: Ragged) -> Any:
    values = tensor_of(lists.values)
    if not isinstance(values, torch.Tensor) or values.is_nested:
        return lists.tolist()
    return torch.nested.nested_tensor_from_jagged(values, torch.from_numpy(lists.offsets.copy()))
