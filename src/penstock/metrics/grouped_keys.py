"""Ids of any kind -> 64-bit keys: which rows belong together."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.features.hashes import value_hashes
from penstock.metrics.inputs import as_array

Keys = NDArray[np.uint64]

NULL_KEY = np.uint64(0x6E6F2067726F7570)
"""Of integers that are missing."""


def group_keys(groups: Any, owner: str) -> Keys:
    """One key for each id: an integer's own bits, a stable 64-bit hash of anything else; nulls are one group.

    `groups` is an Arrow array, a NumPy array, a torch tensor or a sequence. Two different texts share a key with a
    chance of 2**-64: among a million groups some pair does with a chance of 3 in 100 million.
    """
    if not isinstance(groups, pa.Array | pa.ChunkedArray):
        values = groups if isinstance(groups, list | tuple) else as_array(groups)
        if isinstance(values, np.ndarray):
            values = np.ravel(values)
            if values.dtype.kind in "iub":
                return _bits(values)
        groups = _arrow(values, owner)
    return _arrow_keys(groups)


def _bits(integers: NDArray[Any]) -> Keys:
    """Equal integers of any width have equal bits."""
    return integers.astype(np.uint64 if integers.dtype.kind == "u" else np.int64).view(np.uint64)


def _arrow(values: Any, owner: str) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{owner}: the groups are not ids of one kind: {error}") from error


def _arrow_keys(groups: Any) -> Keys:
    if isinstance(groups, pa.ChunkedArray):
        groups = groups.combine_chunks()
    if pa.types.is_dictionary(groups.type):
        groups = groups.dictionary_decode()
    if not pa.types.is_integer(groups.type):
        return value_hashes(groups)
    keys = _bits(pc.fill_null(groups, 0).to_numpy())
    if groups.null_count:
        keys[groups.is_null().to_numpy(zero_copy_only=False)] = NULL_KEY
    return keys
