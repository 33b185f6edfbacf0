"""The arrays of a store, read when and where they are looked at."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.store.schema import StoreSchema


class Samples(Protocol):
    """Values by the number of a sample."""

    def __getitem__(self, position: int, /) -> NDArray[Any]:
        """Those of one sample."""
        ...


def stored_arrays(store: Path, document: dict[str, Any]) -> Mapping[tuple[str, str], Samples]:
    """All arrays of a store, by split and name."""
    if document["options"]["target"] not in ("parquet", "ipc"):
        return {(item["split"], item["name"]): _mapped(store, item) for item in document["arrays"]}
    from penstock.store.merge.part_reading import PartSamples

    schema = StoreSchema.from_document(document["schema"])
    arrays: dict[tuple[str, str], Samples] = {}
    for split in document["splits"]:
        names = [item["name"] for item in document["files"] if item["name"].startswith(f"{split}/")]
        samples = PartSamples([store / name for name in names])
        arrays |= {(split, spec.name): samples.column(spec) for spec in schema.arrays}
    return arrays


def _mapped(store: Path, item: dict[str, Any]) -> NDArray[Any]:
    dtype, shape = np.dtype(item["dtype"]), tuple(item["shape"])
    if 0 in shape or dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    return np.memmap(store / item["file"], dtype, "r", item["offset"], shape)
