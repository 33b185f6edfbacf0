"""The schema that a first sample has."""

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from penstock.config.errors import DataError
from penstock.store.builder import NO_SAMPLE, Sample, wrong_heads
from penstock.store.conversion import fill
from penstock.store.schema import FEATURES, LABELS, MASKS, ArrayNames, DType, StoreSchema, sample_schema

_FLOATS = tuple(np.dtype(kind) for kind in (np.float32, np.float64))
_WHOLES = tuple(np.dtype(kind) for kind in (np.int16, np.int64, np.uint64))
"""What whole labels may be where nobody says it; the first that has those of a first sample is taken."""
_MOST_EXACT = 2.0**24
"""Beyond it, float32 does not have all whole numbers: labels would become their neighbours."""


def inferred_schema(
    sample: Sample,
    *,
    names: ArrayNames | None = None,
    feature_dtype: DTypeLike = np.float32,
    label_dtype: DTypeLike | None = None,
    mask_dtype: DTypeLike = np.int8,
    file: str | None = None,
) -> StoreSchema:
    """The schema that a first sample has: its heads, its widths, and types like those of its labels (see `label_type`).

    Types that are given hold whatever is in it; `file` is what messages begin with. What the sample has under other
    keys than features, labels and masks is not in the schema.
    """
    place = f"{'' if file is None else f'{file}: '}sample 0: "
    _check_keys(sample, place)
    labels, masks = (_by_head(sample, part, place) for part in (LABELS, MASKS))
    declared = None if label_dtype is None else np.dtype(label_dtype)
    return sample_schema(
        _width(sample[FEATURES], f"{place}{FEATURES}"),
        {head: declared or label_type(label) for head, label in labels.items()},
        {head: _width(mask, f"{place}{MASKS}: head '{head}'") for head, mask in masks.items()},
        names=names,
        feature_dtype=feature_dtype,
        mask_dtype=mask_dtype,
    )


def label_type(labels: Any) -> DType:
    """The type for labels like these: by their own type, since a float that is whole says nothing of the next.

    Floats give float32, or float64 where they are too large for it; whole numbers int16, or the first that has them. A
    label that is missing (NaN), or no number, tells nothing: it is refused when it comes to the array.

    >>> [str(label_type(label)) for label in (3, 3.0, 70_000, 1 << 63, 1e9)]
    ['int16', 'float32', 'int64', 'uint64', 'float64']
    """
    try:
        values = np.asarray(labels)
    except ValueError:
        return _WHOLES[0]
    if values.dtype.kind == "f" and np.isfinite(values).all():
        is_small = values.dtype.itemsize <= _FLOATS[0].itemsize or (np.abs(values) <= _MOST_EXACT).all()
        return _FLOATS[0] if is_small else _FLOATS[1]
    fitting = (dtype for dtype in _WHOLES if fill(np.empty(values.shape, dtype), values) is None)
    return next(fitting, _WHOLES[0])


def _check_keys(sample: Sample, place: str) -> None:
    """Refuse what is no sample, and a key that is nearly that of a part: its values would be left out in silence."""
    if not isinstance(sample, Mapping):
        raise DataError(f"{place}{NO_SAMPLE}")
    for part in (FEATURES, LABELS, MASKS):
        near = difflib.get_close_matches(part, map(str, sample), n=1, cutoff=0.8)
        if part not in sample and near:
            raise DataError(f"{place}has '{near[0]}' but no '{part}'; is it that?")
    if FEATURES not in sample:
        raise DataError(f"{place}{NO_SAMPLE}")


def _by_head(sample: Sample, part: str, place: str) -> Mapping[str, Any]:
    values = sample.get(part) or {}
    if not isinstance(values, Mapping):
        raise DataError(f"{place}{part}: {wrong_heads(values)}")
    return values


def _width(values: Any, place: str) -> int:
    try:
        shape: tuple[int, ...] = np.shape(values)
    except ValueError:
        raise DataError(f"{place}: has parts of different lengths but should be numbers in a row") from None
    if len(shape) != 1:
        raise DataError(f"{place}: has shape {shape} but should be numbers in a row")
    return shape[0]
