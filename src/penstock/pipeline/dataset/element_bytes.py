"""How many bytes an element of a Dataset takes while it waits."""

from typing import Any

import numpy as np

from penstock.pipeline.dataset.ragged import Ragged

_OBJECT_BYTES = 64
"""Of a text or another object, and of a value that stands alone."""


def element_bytes(element: Any) -> int:
    """Bytes of a batch or a row: exact for numbers, an estimate for objects."""
    if isinstance(element, dict):
        return sum(element_bytes(value) for value in element.values())
    if isinstance(element, Ragged):
        return element_bytes(element.values) + element.offsets.nbytes
    if isinstance(element, np.ndarray) and element.dtype.hasobject:
        return int(element.size) * _OBJECT_BYTES
    if isinstance(element, list):
        return len(element) * _OBJECT_BYTES
    return max(_OBJECT_BYTES, int(getattr(element, "nbytes", 0)))
