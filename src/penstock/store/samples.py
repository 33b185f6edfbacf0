"""Lists of samples <-> arrays.

A sample is `{"features": [...], "labels": {head: number}, "masks": {head: [...]}}`, with lists or NumPy arrays. Many of
them take many times the memory of the same numbers in arrays: convert early.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.builder import BatchBuilder, Sample
from penstock.store.inference import inferred_schema
from penstock.store.schema import FEATURES, LABELS, MASKS, ArrayNames, StoreSchema

_BLOCK_SAMPLES = 256

Place = tuple[str, str | None]


def samples_to_arrays(
    samples: Iterable[Sample], schema: StoreSchema | None = None, *, file: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of samples: their first axis counts samples, and `save_batch` writes them.

    A sample is a dict: `features` are numbers in a row, `labels` a number by head, `masks` numbers in a row by head;
    labels and masks may be absent. Numbers come as lists or as NumPy arrays, of any type whose values fit.

    A schema has names, types and widths; `penstock.store.schema.sample_schema` makes one. Without it the first sample
    gives the heads and widths, and the types are float32, int16 and int8; labels of the first sample that are floats
    or that int16 does not have make it float32 or int64. Other keys of samples are left out, unless a schema has an
    array of that name.

    Every sample is held to the schema: DataError names the sample, the head and the value that does not fit, after
    `file`, if there is one.

    >>> samples_to_arrays([{"features": [0.5, 3], "labels": {"move": 1}, "masks": {"move": [0, 1, 1]}}])
    {'strategic_features': array([[0.5, 3. ]], dtype=float32), 'labels_move': array([1], dtype=int16), \
'masks_move': array([[0, 1, 1]], dtype=int8)}
    """
    place = "" if file is None else f"{file}: "
    if isinstance(samples, Mapping):
        raise DataError(f"{place}this is one dict; give a list of samples, or any iterable of them")
    found = samples if isinstance(samples, list) else list(samples)
    if schema is None:
        if not found:
            raise DataError(f"{place}there are no samples to find a schema from; declare one")
        schema = inferred_schema(found[0], file=file)
    builder = BatchBuilder(schema, len(found))
    for sample in found:
        builder.add(sample, file=file)
    return builder.take()


def arrays_to_samples(
    arrays: Mapping[str, NDArray[Any]], *, names: ArrayNames | None = None
) -> Iterator[dict[str, Any]]:
    """The samples in arrays, one after the other, with lists of Python's numbers; the inverse of `samples_to_arrays`.

    `names` says how the arrays are called, where they are not `strategic_features`, `labels_{head}` and
    `masks_{head}`; an array of another name is in each sample under that name. Few samples at a time are in memory.

    >>> arrays = {"strategic_features": np.zeros((4, 2)), "labels_move": np.arange(4), "turn": np.ones(4)}
    >>> next(arrays_to_samples(arrays))
    {'features': [0.0, 0.0], 'labels': {'move': 0}, 'masks': {}, 'turn': 1.0}
    """
    if not isinstance(arrays, Mapping):
        raise DataError(f"arrays have type {type(arrays).__name__}; give a dict from names to arrays")
    places = (names or ArrayNames()).places(arrays)
    found = {name: np.asarray(array) for name, array in arrays.items()}
    return _samples(found, list(places.values()), _num_samples(found))


def _num_samples(arrays: Mapping[str, NDArray[Any]]) -> int:
    first, num_samples = "", 0
    for name, array in arrays.items():
        if array.ndim == 0:
            raise DataError(f"array '{name}' is a single value; its first axis must be samples")
        first, num_samples = (first, num_samples) if first else (name, len(array))
        if len(array) != num_samples:
            raise DataError(f"array '{first}' has {num_samples} samples but '{name}' has {len(array)}")
    return num_samples


def _samples(
    arrays: Mapping[str, NDArray[Any]], places: list[Place], num_samples: int
) -> Iterator[dict[str, Any]]:
    for start in range(0, num_samples, _BLOCK_SAMPLES):
        columns = [array[start : start + _BLOCK_SAMPLES].tolist() for array in arrays.values()]
        for values in zip(*columns, strict=True):
            yield _sample(places, values)


def _sample(places: list[Place], values: tuple[Any, ...]) -> dict[str, Any]:
    sample: dict[str, Any] = {FEATURES: [], LABELS: {}, MASKS: {}}
    for (key, head), value in zip(places, values, strict=True):
        if head is None:
            sample[key] = value
        else:
            sample[key][head] = value
    return sample
