"""Lists of samples <-> arrays.

A sample is `{"features": [...], "labels": {head: int}, "masks": {head: [...]}}`, with lists or NumPy arrays. Many of
them take many times the memory of the same numbers in arrays: convert early.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from penstock.config.errors import DataError
from penstock.store.builder import BatchBuilder, Sample
from penstock.store.schema import FEATURES, LABELS, MASKS, ArrayNames, StoreSchema, sample_schema

_BLOCK_SAMPLES = 256


def samples_to_arrays(
    samples: Iterable[Sample], schema: StoreSchema | None = None, *, file: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of samples; without a schema it is that of the first one, with float32, int16 and int8."""
    found = samples if isinstance(samples, list) else list(samples)
    if schema is None:
        if not found:
            raise DataError(
                f"{'' if file is None else f'{file}: '}there are no samples to find a schema from; declare one"
            )
        schema = inferred_schema(found[0], file=file)
    builder = BatchBuilder(schema, len(found))
    for sample in found:
        builder.add(sample, file=file)
    return builder.take()


def arrays_to_samples(
    arrays: Mapping[str, NDArray[Any]], *, names: ArrayNames | None = None
) -> Iterator[dict[str, Any]]:
    """The samples in arrays, one after the other, with lists of Python's numbers."""
    names = names or ArrayNames()
    places = [(name, *names.place(name)) for name in arrays]
    num_samples = len(next(iter(arrays.values()), ()))
    for start in range(0, num_samples, _BLOCK_SAMPLES):
        columns = [arrays[name][start : start + _BLOCK_SAMPLES].tolist() for name, _, _ in places]
        for values in zip(*columns, strict=True):
            yield _sample(places, values)


def inferred_schema(
    sample: Sample,
    *,
    names: ArrayNames | None = None,
    feature_dtype: DTypeLike = np.float32,
    label_dtype: DTypeLike = np.int16,
    mask_dtype: DTypeLike = np.int8,
    file: str | None = None,
) -> StoreSchema:
    """The schema that a first sample has; types are as given, they do not follow from it."""
    place = "" if file is None else f"{file}: "
    if FEATURES not in sample:
        raise DataError(
            f"{place}sample 0: is no sample; give a dict with '{FEATURES}', and '{LABELS}' and '{MASKS}' by head"
        )
    masks = sample.get(MASKS) or {}
    widths = {head: _width(mask, f"{place}sample 0: {MASKS}: head '{head}'") for head, mask in masks.items()}
    return sample_schema(
        _width(sample[FEATURES], f"{place}sample 0: {FEATURES}"),
        tuple(sample.get(LABELS) or {}),
        widths,
        names=names,
        feature_dtype=feature_dtype,
        label_dtype=label_dtype,
        mask_dtype=mask_dtype,
    )


def _width(values: Any, place: str) -> int:
    shape: tuple[int, ...] = np.shape(values)
    if len(shape) != 1:
        raise DataError(f"{place} has shape {shape} but should be numbers in a row")
    return shape[0]


def _sample(places: list[tuple[str, str, str | None]], values: tuple[Any, ...]) -> dict[str, Any]:
    sample: dict[str, Any] = {FEATURES: [], LABELS: {}, MASKS: {}}
    for (_, key, head), value in zip(places, values, strict=True):
        if head is None:
            sample[key] = value
        else:
            sample[key][head] = value
    return sample
