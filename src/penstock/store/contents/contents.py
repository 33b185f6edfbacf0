"""Arrays, and blocks of their values."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.config.sizes import MIB
from penstock.store.batch_file.values import Values
from penstock.store.schema import StoreSchema

CHUNK_BYTES = 4 * MIB
"""Of one array, read at a time."""


Interval = tuple[int, int]
"""Samples of a block: the first, and the one after the last."""


class Block(Protocol):
    """Samples that are reached at once."""

    @property
    def num_rows(self) -> int:
        """Samples."""
        ...

    @property
    def held_bytes(self) -> int:
        """The most that is held while values are read."""
        ...

    def chunks(self, intervals: Sequence[Interval]) -> Iterator[tuple[str, Values]]:
        """Values of all arrays in some samples, each with the name of its array; what must be decoded is so once."""
        ...


@dataclass(frozen=True, slots=True)
class ArrayContents:
    """One array, as headers tell it."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columns: tuple[str, ...] = ()
    """What its values were called where they came from; empty: nobody knows."""

    @property
    def num_bytes(self) -> int:
        """Of its values as they are."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Part:
    """The samples of a split, or all samples of batch files."""

    split: str | None
    arrays: tuple[ArrayContents, ...]
    blocks: Sequence[Block]

    @property
    def num_rows(self) -> int:
        """Samples."""
        return self.arrays[0].shape[0] if self.arrays else 0

    @property
    def row_bytes(self) -> int:
        """Of one sample in all arrays, as it is."""
        return -(-sum(array.num_bytes for array in self.arrays) // max(1, self.num_rows))


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything that is known of a path before a value is read."""

    kind: str
    facts: Mapping[str, Any]
    """Ready for JSON."""
    heads: tuple[str, ...]
    masked_heads: tuple[str, ...]
    parts: tuple[Part, ...]
    warnings: tuple[str, ...] = ()


def arrays_of(schema: StoreSchema, num_rows: int) -> tuple[ArrayContents, ...]:
    """The arrays of a schema with so many samples."""
    return tuple(
        ArrayContents(spec.name, spec.dtype, spec.shape(num_rows), spec.columns) for spec in schema.arrays
    )
