"""The arrays of a store, read when and where they are looked at."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
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
        return {(item["split"], item["name"]): _in_file(store, item) for item in document["arrays"]}
    from penstock.store.merge.checking.part_reading import PartSamples

    schema = StoreSchema.from_document(document["schema"])
    arrays: dict[tuple[str, str], Samples] = {}
    for split in document["splits"]:
        names = [item["name"] for item in document["files"] if item["name"].startswith(f"{split}/")]
        samples = PartSamples([store / name for name in names])
        arrays |= {(split, spec.name): samples.column(spec) for spec in schema.arrays}
    return arrays


@dataclass(frozen=True, slots=True)
class FileSamples:
    """One array of a split that lies in a file as it is. Mapping it would leave a stretch in memory for each look."""

    path: Path
    dtype: np.dtype[Any]
    width: int
    offset: int

    def __getitem__(self, position: int, /) -> NDArray[Any]:
        start = self.offset + position * self.width * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, self.width, offset=start)


def _in_file(store: Path, item: dict[str, Any]) -> FileSamples:
    width = math.prod(item["shape"][1:])
    return FileSamples(store / item["file"], np.dtype(item["dtype"]), width, item["offset"])
