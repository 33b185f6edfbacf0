"""EditDistance, an operator of custom_feature: how many characters must be put in, left out or changed.

Importing this module imports numba: custom.py does, when a run names the operator.
"""

from typing import Any

import numpy as np

from penstock.features.values import Float64Array
from penstock.runtime.kernels import kernel


class EditDistance:
    """The distance of two strings as a number; NaN, so missing, where one of them is."""

    reads_strings = True

    def __init__(self, encoding: str = "utf-8") -> None:
        """`encoding`: utf-8 counts characters, latin counts bytes."""
        if encoding not in ("utf-8", "latin"):
            raise ValueError(f"encoding is '{encoding}'; known: utf-8, latin")
        self.encoding = encoding

    def __call__(self, left: Any, right: Any) -> Float64Array:
        distances = np.full(len(left), np.nan)
        both = np.flatnonzero(np.asarray(left.is_valid()) & np.asarray(right.is_valid()))
        _distances(*self._characters(left, both), *self._characters(right, both), both, distances)
        return distances

    def _characters(self, strings: Any, rows: Any) -> tuple[Any, Any]:
        """The characters of these strings one after the other, and where each string ends."""
        texts = strings.take(rows).to_pylist()
        if self.encoding == "latin":
            texts = [text.encode().decode("latin-1") for text in texts]
        characters = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
        return characters, np.cumsum([0, *map(len, texts)], dtype=np.int64)


@kernel
def _distances(left: Any, left_ends: Any, right: Any, right_ends: Any, rows: Any, out: Any) -> None:
    for index in range(len(rows)):
        a = left[left_ends[index] : left_ends[index + 1]]
        b = right[right_ends[index] : right_ends[index + 1]]
        # Of the first characters of a to each beginning of b, one character of a after the other.
        distances = np.arange(len(b) + 1)
        for i in range(len(a)):
            diagonal = distances[0]
            distances[0] = i + 1
            for j in range(len(b)):
                changed = diagonal + (a[i] != b[j])
                diagonal = distances[j + 1]
                distances[j + 1] = min(changed, diagonal + 1, distances[j] + 1)
        out[rows[index]] = distances[len(b)]
