"""A block of rows with what is true about them, and the kinds of data: those that make such blocks, and raw ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import pyarrow as pa

from penstock.config.registry import Registry
from penstock.prep.sample_data.draws import FloatArray
from penstock.prep.sample_data.summary import SplitSummary

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


@runtime_checkable
class RawKind(Protocol):
    """Data as they come before preparation: files in a form of their own, not yet rows of columns."""

    planted: str
    format: str
    """What the files are, and the only format that there is."""
    folder: str
    """Where they go; they are not split before they are prepared."""

    def write(
        self, directory: Path, num_rows: int, num_files: int | None, on_rows: Callable[[int], None]
    ) -> SplitSummary:
        """Write the files to the folder under this directory, and tell what is in them."""
        ...


KINDS: Registry[Callable[[int], SampleKind | RawKind]] = Registry(
    "kind of sample data",
    {
        "clicks": "penstock.prep.sample_data.clicks.kind:Clicks",
        "criteo": "penstock.prep.sample_data.criteo:Criteo",
        "game": "penstock.prep.sample_data.game.kind:Game",
    },
)
"""Name -> a function from the seed to the kind."""
