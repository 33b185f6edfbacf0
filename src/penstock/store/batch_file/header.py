"""What is known of a batch file before a value is read."""

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock.config.errors import DataError
from penstock.store.schema import ArrayNames, ArraySpec, DType, StoreSchema


@dataclass(frozen=True)
class StoredArray:
    """One array of a file: what it is, and where its bytes lie."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    offset: int
    """Of its first byte in the file."""
    num_bytes: int
    """In the file, compressed or not."""
    compression: str
    """none: the values lie in the file as they are."""
    checksum: int | None
    """CRC-32 of the values as they are; nobody knows that of pickled objects."""
    is_column_major: bool = False
    """NumPy's Fortran order: the values of a sample lie apart. Native files have none."""

    @property
    def array_bytes(self) -> int:
        """Of the values as they are."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_copyable(self) -> bool:
        """Whether the samples lie one behind the other in the file, so that bytes can be copied out of it."""
        return self.compression == "none" and not self.is_column_major and not self.dtype.hasobject


@dataclass(frozen=True)
class BatchRecord:
    """One batch file as a manifest lists it."""

    name: str
    """Of the file, without its directory."""
    num_samples: int
    num_bytes: int
    checksum: int
    """That of its header, which has those of the arrays in it."""


@dataclass(frozen=True)
class BatchHeader:
    """All arrays of a file; each has the same number of samples."""

    path: Path
    layout: str
    num_bytes: int
    """Of the file."""
    arrays: Mapping[str, StoredArray]

    @property
    def num_samples(self) -> int:
        """The length of the first axis."""
        return next((array.shape[0] for array in self.arrays.values()), 0)

    @property
    def has_objects(self) -> bool:
        """Whether there is an array of pickled objects among them, as in files of old."""
        return any(array.dtype.hasobject for array in self.arrays.values())

    @cached_property
    def checksum(self) -> int:
        """Of what is in the file: names, types, shapes and values; not of the way it is stored."""
        facts = [[array.name, array.dtype.str, array.shape, array.checksum] for array in self.arrays.values()]
        return zlib.crc32(json.dumps(facts).encode())

    @property
    def record(self) -> BatchRecord:
        """What a manifest keeps of it."""
        return BatchRecord(self.path.name, self.num_samples, self.num_bytes, self.checksum)

    def schema(self, names: ArrayNames | None = None) -> StoreSchema:
        """Names, types and widths of the arrays."""
        file = str(self.path)
        specs = [
            ArraySpec.of_shape(array.name, array.dtype, array.shape, file) for array in self.arrays.values()
        ]
        return StoreSchema(tuple(specs), names or ArrayNames())

    def array(self, name: str) -> StoredArray:
        """The array of that name."""
        try:
            return self.arrays[name]
        except KeyError:
            known = ", ".join(self.arrays) or "none"
            raise DataError(f"{self.path}: has no array '{name}'; it has: {known}") from None


def check_lengths(file: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse arrays that do not all have the same samples."""
    lengths: dict[int, str] = {}
    for name, shape in shapes.items():
        if not shape:
            raise DataError(f"{file}: array '{name}' is a single value; its first axis must be samples")
        lengths.setdefault(shape[0], name)
    if len(lengths) > 1:
        (first, name), (other, other_name) = list(lengths.items())[:2]
        raise DataError(
            f"{file}: array '{name}' has {first} samples but '{other_name}' has {other}; write them again"
        )
