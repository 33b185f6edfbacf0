"""The part of data_config about batches: how large, in which order, cut by what."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, NonNegativeFloat, PositiveInt, model_validator

from penstock.config.errors import Problem
from penstock.config.section import Legacy, Section, raise_problems
from penstock.config.sizes import MIB, ByteSize


class Oversize(StrEnum):
    """What happens to a row that alone costs more than a batch may."""

    alone = "alone"
    error = "error"
    drop = "drop"


def _error_is_absent(cost: float | str | None) -> float | None:
    """`null_cost: error` says in words what leaving it out says."""
    return None if isinstance(cost, str) else cost


def _expression(text: str | None) -> str | None:
    if text is None:
        return None
    # It brings pyarrow, which `schema` and most run files do without.
    from penstock.data.row_cost import cost_of_expression

    return cost_of_expression(text).name


_COST_KEYS = ("sample_cost_field", "sample_cost", "max_batch_rows", "oversize", "null_cost")
"""What means something only where batches are cut by cost."""


class BatchingSection(Section):
    """The part of data_config about batches."""

    batch_size: PositiveInt = 1024
    """Rows in a batch."""

    eval_batch_size: PositiveInt | None = None
    """Rows in a batch of evaluation and prediction; absent: batch_size."""

    drop_remainder: bool = False
    """Leave out the last batch where it is short; prediction keeps every row."""

    shuffle: bool = False
    """Give rows in random order, in training only."""

    shuffle_buffer: ByteSize = 64 * MIB
    """How many bytes of rows may wait to be drawn."""

    shuffle_buffer_size: Annotated[PositiveInt, Legacy("shuffle_buffer")] = 32
    """The buffer of old files, in batches; counts only where shuffle_buffer is not written."""

    seed: int = 0
    """Every order of rows follows from this number."""

    sample_cost_field: str | None = None
    """Column with the cost of a row."""

    sample_cost: Annotated[str | None, AfterValidator(_expression)] = None
    """Cost of a row as an expression over lengths, such as sum_of_lengths(clicks), instead of a column."""

    batch_cost_size: PositiveInt | None = None
    """Most that the rows of a batch may cost together; then batch_size plays no part."""

    max_batch_rows: PositiveInt | None = None
    """Most rows of a batch that is cut by cost."""

    oversize: Oversize = Oversize.alone
    """A row that alone costs more than a batch may: a batch of its own, an error, or left out and counted."""

    null_cost: Annotated[
        NonNegativeFloat | Literal["error"] | None,
        AfterValidator(_error_is_absent),
    ] = None
    """Cost of a row whose own is null, negative or not finite; error, as when absent: such a row stops the run."""

    bucket_by: str | None = None
    """Sequence feature by whose length rows are brought together inside the shuffle buffer."""

    @model_validator(mode="after")
    def _keys_fit_together(self) -> Self:
        if self.sample_cost_field and self.sample_cost:
            raise ValueError("only one of sample_cost_field, sample_cost may be set; both are")
        wrong: dict[str, str] = {}
        if self.shuffle_buffer < MIB:
            wrong["shuffle_buffer"] = f"is {self.shuffle_buffer}; a shuffle needs at least 1MiB"
        if self.bucket_by and not self.shuffle:
            wrong["bucket_by"] = (
                "needs shuffle: true, since rows are brought together inside the shuffle buffer"
            )
        if self.batch_cost_size and not (self.sample_cost_field or self.sample_cost):
            wrong["batch_cost_size"] = "needs sample_cost_field, the column with the cost of a row"
        if not self.batch_cost_size:
            written = [key for key in _COST_KEYS if getattr(self, key) not in (None, Oversize.alone)]
            wrong |= dict.fromkeys(written, "needs batch_cost_size, the most that a batch may cost")
        if wrong:
            raise_problems(self, [Problem((key,), message) for key, message in wrong.items()])
        return self

    def resolved_eval_batch_size(self) -> int:
        return self.eval_batch_size or self.batch_size

    def shuffle_batches(self) -> int | None:
        """The buffer in batches where only the old key is written; absent: shuffle_buffer counts."""
        written = self.model_fields_set
        old_only = "shuffle_buffer_size" in written and "shuffle_buffer" not in written
        return self.shuffle_buffer_size if old_only else None
