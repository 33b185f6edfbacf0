"""How a run cuts its training rows into batches: by rows or by cost, with rows of similar length together or not."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.batching.bucketing import Bucketing
from penstock.batching.cost import cut_by_cost
from penstock.batching.costs import ColumnCost, CostOf, cost_of_column, cost_of_expression
from penstock.batching.lengths import SequenceLength
from penstock.batching.rows import cut_by_rows
from penstock.batching.sections import BatchingSection
from penstock.batching.stage import Stage
from penstock.config.errors import DataError
from penstock.features.feature import Feature
from penstock.features.id_feature import SparseIds
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import Share


@dataclass(frozen=True, slots=True)
class Cutting:
    """What cutting looks at, beside the number of rows."""

    cost: CostOf | None = None
    bucketing: Bucketing | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must be read for it."""
        lengths = () if self.bucketing is None else (self.bucketing.length.column,)
        return (*(self.cost.columns if self.cost is not None else ()), *lengths)

    def check(self, columns: pa.Schema, file_path: str) -> None:
        """Refuse a column that cannot tell a cost or a length. The first file stands for all: they have one type."""
        checks: list[tuple[str, CostOf | SequenceLength]] = []
        if self.cost is not None:
            key = "sample_cost_field" if isinstance(self.cost, ColumnCost) else "sample_cost"
            checks.append((key, self.cost))
        if self.bucketing is not None:
            checks.append(("bucket_by", self.bucketing.length))
        for key, looked_at in checks:
            try:
                looked_at.check(columns)
            except DataError as error:
                raise DataError(f"{file_path}: {error} (data_config.{key})") from error

    def cut(
        self,
        source: RecordStream,
        batching: BatchingSection,
        file_paths: tuple[str, ...] = (),
        share: Share | None = None,
    ) -> Stage:
        """The batches of a run."""
        if self.cost is None or batching.batch_cost_size is None:
            return cut_by_rows(source, batching.batch_size, batching.drop_remainder)
        return cut_by_cost(
            source,
            self.cost,
            batching.batch_cost_size,
            max_batch_rows=batching.max_batch_rows,
            oversize=batching.oversize,
            null_cost=batching.null_cost,  # type: ignore[arg-type] # 'error' is None by now
            drop_remainder=batching.drop_remainder,
            file_paths=file_paths,
            share=share,
        )


BY_ROWS = Cutting()
"""Nothing but their number counts."""


def cutting_of(batching: BatchingSection, features: list[Feature]) -> Cutting:
    """The cutting of a run file; names of features stand for their columns."""
    sequences = sequence_lengths(features)
    cost: CostOf | None = None
    if batching.sample_cost_field:
        cost = cost_of_column(batching.sample_cost_field)
    elif batching.sample_cost:
        cost = cost_of_expression(batching.sample_cost, sequences)
    bucketing = None
    if batching.bucket_by:
        length = sequences.get(batching.bucket_by) or SequenceLength(batching.bucket_by)
        by_cost = batching.batch_cost_size is not None
        run_rows = batching.max_batch_rows if by_cost and batching.max_batch_rows else batching.batch_size
        bucketing = Bucketing(length, run_rows)
    return Cutting(cost, bucketing)


def sequence_lengths(features: list[Feature]) -> Mapping[str, SequenceLength]:
    """Of each feature that may have several values: its column, and what stands between them in a text."""
    return {
        feature.name: SequenceLength(feature.source.column, feature.source.separator.decode())
        for feature in features
        if isinstance(feature, SparseIds)
    }
