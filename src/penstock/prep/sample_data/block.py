"""A block of rows with what is true about them, and the kinds of data that make such blocks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from penstock.config.registry import Registry
from penstock.prep.sample_data.draws import FloatArray

BLOCK_ROWS = 16_384
"""Rows are drawn in whole blocks of this size, so that row i is the same wherever it is written."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows as a model sees them, and what the planted model knows about their labels."""

    rows: pa.RecordBatch
    probabilities: Mapping[str, FloatArray]
    """Binary label -> the probability with which each row's label was drawn as 1."""
    expectations: Mapping[str, FloatArray]
    """Numeric label -> the mean of the distribution from which each row's label was drawn."""

    def slice(self, start: int, stop: int) -> "Block":
        """Some of the rows, without a copy."""
        return Block(
            rows=self.rows.slice(start, stop - start),
            probabilities={label: values[start:stop] for label, values in self.probabilities.items()},
            expectations={label: values[start:stop] for label, values in self.expectations.items()},
        )

    def with_truth(self) -> "Block":
        """The same rows with one more column `true_<label>_prob` per binary label."""
        rows = self.rows
        for label, values in self.probabilities.items():
            rows = rows.append_column(f"true_{label}_prob", pa.array(values))
        return Block(rows, self.probabilities, self.expectations)


class SampleKind(Protocol):
    """One kind of sample data under one seed."""

    planted: str
    """What the labels were drawn from, in a sentence or two for the user."""

    def block(self, index: int) -> Block:
        """The rows from index * BLOCK_ROWS on, always BLOCK_ROWS of them."""
        ...


KINDS: Registry[Callable[[int], SampleKind]] = Registry(
    "kind of sample data",
    {
        "clicks": "penstock.prep.sample_data.clicks.kind:Clicks",
        "criteo": "penstock.prep.sample_data.criteo:Criteo",
    },
)
"""Name -> a function from the seed to the kind."""
