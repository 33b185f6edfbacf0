"""The arrays of a store, read when and where they are looked at."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def map_store(store: Path, document: dict[str, Any]) -> dict[tuple[str, str], NDArray[Any]]:
    """All arrays that a manifest lists, by split and name."""
    return {(item["split"], item["name"]): _mapped(store, item) for item in document["arrays"]}


def _mapped(store: Path, item: dict[str, Any]) -> NDArray[Any]:
    dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
    if 0 in shape or dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    return np.memmap(store / item["file"], dtype, "r", item["offset"], shape)
