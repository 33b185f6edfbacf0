"""What every feature offers, whatever its type and input mode."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from penstock.features.columns import Column


@dataclass(frozen=True, slots=True)
class TableSpec:
    """The embedding table that a sparse feature looks its ids up in; features share one by its name."""

    name: str
    num_rows: int
    dim: int
    pooling: str = "sum"
    init_fn: str | None = None
    trainable: bool = True
    data_type: str = "FP32"
    weighted: bool = False


class Feature(Protocol):
    """Turns columns of a record batch into one column of ids or numbers."""

    @property
    def name(self) -> str:
        """The feature's name in the run file; keys of tensors carry it."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The data columns that `parse` reads."""

    @property
    def table(self) -> TableSpec | None:
        """The embedding table of a sparse feature; None for a dense one."""

    @property
    def width(self) -> int:
        """Numbers per row of a dense feature; 0 for a sparse one."""

    @property
    def reads_text(self) -> bool:
        """Whether values count as they are written, so that 02134 and 2134 are two."""

    def parse(self, batch: pa.RecordBatch | pa.Table) -> Column:
        """The feature's values in every row of the batch. A value that cannot be used raises BadValue."""
