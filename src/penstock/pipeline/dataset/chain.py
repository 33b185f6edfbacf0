"""What a Dataset is before it is read: a source, and what was said about it. Only values, so that it can be shared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.batching.costs import CostOf
from penstock.batching.pricing import CostRules
from penstock.pipeline.dataset.mapping import MapStep
from penstock.pipeline.dataset.sources import Source
from penstock.readers.blocks import Shard
from penstock.readers.survey import Survey


@dataclass(frozen=True, slots=True)
class Shuffling:
    """Rows are drawn from a buffer of so many bytes."""

    buffer_bytes: int
    seed: int


@dataclass(frozen=True, slots=True)
class ByRows:
    """Batches of a number of rows."""

    num_rows: int
    drop_remainder: bool = False


@dataclass(frozen=True, slots=True)
class ByCost:
    """Batches whose rows cost no more than a limit together."""

    cost: CostOf
    rules: CostRules


@dataclass(frozen=True, slots=True)
class Chain:
    """A source and everything that the methods of a Dataset said, each in its place on the way."""

    source: Source
    columns: tuple[str, ...] | None = None
    fills: Mapping[str, Any] = field(default_factory=dict)
    first_rows: int | None = None
    """Only so many rows of the source, in its order: `take` before `shuffle` and `shard`."""
    shard: Shard | None = None
    shuffling: Shuffling | None = None
    take_rows: int | None = None
    """Only so many rows of each epoch, as they come: `take` after `shuffle` or `shard`, before `batch`."""
    cut: ByRows | ByCost | None = None
    """None: elements are rows."""
    maps: tuple[MapStep, ...] = ()
    take_batches: int | None = None
    """Only so many batches of each epoch."""
    epochs: int | None = 1
    """None: without end."""
    take_in_all: int | None = None
    """Only so many elements in all epochs together: `take` after `epochs`."""
    prefetch_bytes: int | None = None
    memory_bytes: int | None = None

    def survey(self) -> Survey:
        """The rows and columns that are read: those that are given out, and those that tell the cost."""
        wanted = self.columns
        if wanted is not None and isinstance(self.cut, ByCost):
            wanted = tuple(dict.fromkeys([*wanted, *self.cut.cost.columns]))
        return self.source.survey(wanted, self.first_rows)

    def names(self) -> list[str]:
        """The columns that are given out, or that the first map gets."""
        return list(self.columns) if self.columns is not None else self.source.survey().columns.names
