"""What keeps samples together in splits, as one number for each sample."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.features.hashes import value_hashes


def sample_group(sample: Mapping[str, Any], key: str, file: str, number: int) -> int:
    """The number of one sample's group."""
    if key not in sample:
        raise DataError(f"{file}: sample {number}: {_missing(key)}")
    return group_number(sample[key])


def groups_of(values: Any, key: str, file: str) -> NDArray[np.uint64]:
    """The numbers of the groups of many samples; `values` is None where there are none under the key."""
    if values is None:
        raise DataError(f"{file}: {_missing(key)}")
    return value_hashes(values if isinstance(values, pa.Array) else pa.array(values))


@functools.lru_cache(maxsize=4096)
def group_number(value: Any) -> int:
    """Equal values have equal numbers, in every process; values come again and again."""
    return int(value_hashes(pa.array([value]))[0])


def _missing(key: str) -> str:
    return f"has no '{key}', which preprocessing.splits.group_key names"
