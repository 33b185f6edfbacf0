"""Samples that look like those of a strategy game: 893 features, 7 heads with labels and masks.

Most features of a moment of a game are zero, many are small counts, the rest are shares and positions; of the actions
that a head knows, few are allowed. That matters to compression, and to nothing else here.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_FEATURES = 893
MASK_WIDTHS = {
    "action_type": 13,
    "queue": 60,
    "unit": 150,
    "target_unit": 150,
    "column": 200,
    "row": 200,
    "ability": 320,
}
SAMPLE_BYTES = 4 * NUM_FEATURES + 2 * len(MASK_WIDTHS) + sum(MASK_WIDTHS.values())

_SHARE_OF_COUNTS, _SHARE_OF_FLOATS = 0.5, 0.3
"""Of the columns; the others are flags."""
_SHARE_ALLOWED = 0.06


def game_arrays(num_samples: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """The arrays of so many samples; the same for the same seed."""
    generator = np.random.default_rng(seed)
    heads = {head: _head(generator, num_samples, width) for head, width in MASK_WIDTHS.items()}
    return {
        "strategic_features": _features(generator, num_samples),
        **{f"labels_{head}": labels for head, (labels, _) in heads.items()},
        **{f"masks_{head}": masks for head, (_, masks) in heads.items()},
    }


def game_samples(arrays: dict[str, NDArray[Any]], as_lists: bool) -> Iterator[dict[str, Any]]:
    """The same as dicts, of Python lists or of NumPy arrays as a game's tools give them (float64 and int64)."""

    def form(values: NDArray[Any]) -> Any:
        if as_lists:
            return values.tolist()
        return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)

    for sample in range(len(arrays["strategic_features"])):
        yield {
            "features": form(arrays["strategic_features"][sample]),
            "labels": {head: int(arrays[f"labels_{head}"][sample]) for head in MASK_WIDTHS},
            "masks": {head: form(arrays[f"masks_{head}"][sample]) for head in MASK_WIDTHS},
        }


def _features(generator: np.random.Generator, num_samples: int) -> NDArray[np.float32]:
    kinds = generator.random(NUM_FEATURES)
    rates = generator.gamma(0.5, 2.0, NUM_FEATURES)
    shape = num_samples, NUM_FEATURES
    flags = (generator.random(shape) < 0.1).astype(np.float32)
    counts = generator.poisson(rates, shape).astype(np.float32)
    floats = generator.random(shape, np.float32) * (generator.random(shape) < 0.5)
    is_count = kinds < _SHARE_OF_COUNTS
    is_float = (kinds >= _SHARE_OF_COUNTS) & (kinds < _SHARE_OF_COUNTS + _SHARE_OF_FLOATS)
    return np.where(is_count, counts, np.where(is_float, floats, flags))


def _head(
    generator: np.random.Generator, num_samples: int, width: int
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    masks = (generator.random((num_samples, width)) < _SHARE_ALLOWED).astype(np.int8)
    labels = generator.integers(0, width, num_samples).astype(np.int16)
    masks[np.arange(num_samples), labels] = 1
    return labels, masks
