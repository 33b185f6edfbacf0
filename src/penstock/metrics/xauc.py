"""Share of pairs of rows that are predicted in the right order."""

import math
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import BudgetExceeded, CheckpointError, DataError
from penstock.metrics.inputs import as_array
from penstock.metrics.memory import MemoryNeeds
from penstock.metrics.metric import (
    MetricState,
    Settings,
    Values,
    refuse_other_settings,
    with_settings,
    without_settings,
)
from penstock.metrics.xauc_pairs import drawn_numbers, num_pairs, num_right_pairs, pairs_numbered
from penstock.metrics.xauc_rows import ROWS_STATE, Numbers, RowSample

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import XAUC as XaucSection

MAX_ROWS = 1 << 20
"""Rows that are kept of the whole set. What is drawn from them differs by about 1e-3 from all rows."""
LEAST_ROWS = 1 << 16
"""Rows that are kept where memory is short: what is drawn from them differs by about 4e-3 from all rows."""
MAX_EXACT_ROWS = 1 << 25
"""Rows whose pairs are counted exactly."""
SAMPLED_ROW_BYTES = 128
"""Of each row that is kept: twice as many are held before the highest lots go, and pairs are drawn from the rest."""
EXACT_ROW_BYTES = 80
"""Of each row while all pairs are counted: measured 73."""
MAX_DRAWS = 1 << 24
"""From so many pairs on, counting all pairs of the kept rows is faster than drawing."""
_BLOCK_PAIRS = 1 << 16
"""Pairs that are drawn at a time: about 5 MiB."""


class XAUC:
    """Share of pairs i < j with (t_i - t_j)(p_i - p_j) > 0; a tie on either side counts as wrong.

    Over the whole set, rows are kept up to `max_rows` (beyond that a uniform sample of them), and `sample_ratio` of
    their pairs, or `max_pairs`, are drawn without repetition; all pairs, when that gives none or all, or when counting
    them all is faster. `exact` counts all pairs and refuses more rows than it can hold. `in_batch` counts all pairs
    inside each batch and depends on how rows are cut into batches.
    """

    def __init__(
        self,
        in_batch: bool = False,
        sample_ratio: float = 1e-3,
        max_pairs: int | None = None,
        exact: bool = False,
        pair_weight: bool = True,
        *,
        max_rows: int | None = None,
        seed: int = 0,
    ) -> None:
        if in_batch and exact:
            raise DataError("xauc: in_batch and exact exclude each other; leave one out")
        if not 0.0 < sample_ratio <= 1.0 or (max_pairs is not None and max_pairs < 1):
            raise DataError(
                f"xauc: sample_ratio {sample_ratio}, max_pairs {max_pairs}: above 0 and up to 1, and at least 1"
            )
        self.in_batch, self.exact, self.pair_weight = in_batch, exact, pair_weight
        self.sample_ratio, self.max_pairs, self.seed = sample_ratio, max_pairs, seed
        self._rows = RowSample(max_rows or (MAX_EXACT_ROWS if exact else MAX_ROWS), seed)
        self._counts = np.zeros(3, dtype=np.int64)  # in batches: right pairs, pairs, batches with a pair
        self._sum_of_shares = np.zeros((), dtype=np.float64)
        self._num_left_out = np.zeros((), dtype=np.int64)

    @classmethod
    def from_section(cls, section: "XaucSection") -> Self:
        """As the run file says."""
        return cls(
            in_batch=section.in_batch,
            sample_ratio=section.sample_ratio,
            max_pairs=section.max_pairs,
            exact=section.exact,
            pair_weight=section.pair_weight,
        )

    @property
    def settings(self) -> Settings:
        """What pairs are counted by."""
        names = ("in_batch", "exact", "pair_weight", "sample_ratio", "max_pairs", "seed")
        return {name: getattr(self, name) for name in names}

    def update(self, preds: Values, target: Values) -> None:
        """Add the rows of one batch."""
        predicted, labels, missing = comparable_rows(preds, target, "xauc")
        self._num_left_out += missing
        if self.in_batch:
            self._count_batch(predicted, labels)
        else:
            self._rows.add(predicted, labels)
            self._check_size()

    def merge(self, other: Self) -> None:
        """Add the rows of another with the same options."""
        refuse_other_settings("xauc", self.settings, other.settings)
        self._counts += other._counts
        self._sum_of_shares += other._sum_of_shares
        self._num_left_out += other._num_left_out
        self._rows.merge(other._rows)
        self._check_size()

    def compute(self) -> float:
        """The share; NaN unless there was a pair."""
        if self.undefined_because is not None:
            return math.nan
        if not self.in_batch:
            return self._share_of_rows()
        right, pairs, batches = self._counts
        return float(right / pairs if self.pair_weight else self._sum_of_shares / batches)

    def reset(self) -> None:
        """Forget every row."""
        self._rows.reset()
        for array in self._sums().values():
            array[...] = 0

    def state_dict(self) -> MetricState:
        """The kept rows, the counts of batches, how many rows were left out, and the settings."""
        sums = {name: array.copy() for name, array in self._sums().items()}
        return with_settings({**self._rows.state_dict(), **sums}, self.settings)

    def load_state_dict(self, state: MetricState) -> None:
        """Go on from saved rows and counts of the same settings."""
        state = without_settings(state, self.settings, "xauc")
        expected = {*ROWS_STATE, *self._sums()}
        if state.keys() != expected:
            raise CheckpointError(f"xauc: the saved state has {sorted(state)}, not {sorted(expected)}")
        self._rows.load_state_dict(state)
        for name, array in self._sums().items():
            array[...] = state[name]

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """Pairs of batches are counted at once; exact needs all rows, a sample takes as many as there is room for."""
        if self.in_batch:
            return MemoryNeeds(0, 0)
        if self.exact:
            needed = EXACT_ROW_BYTES * min(num_rows, MAX_EXACT_ROWS)
            return MemoryNeeds(needed, needed)
        return MemoryNeeds(
            SAMPLED_ROW_BYTES * min(num_rows, LEAST_ROWS), SAMPLED_ROW_BYTES * min(num_rows, MAX_ROWS)
        )

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        """Keep as many rows as this is enough for."""
        row_bytes = EXACT_ROW_BYTES if self.exact else SAMPLED_ROW_BYTES
        self._rows.max_rows = max(2, min(self._rows.max_rows, limit_bytes // row_bytes))

    @property
    def held_bytes(self) -> int:
        """Bytes of the kept rows."""
        return self._rows.held_bytes

    @property
    def computing_bytes(self) -> int:
        """The same while their pairs are counted."""
        return EXACT_ROW_BYTES * self._rows.num_held

    @property
    def undefined_because(self) -> str | None:
        """Why there is no share; None when there is one."""
        if self.in_batch:
            return None if self._counts[1] else "no batch with two rows"
        return None if self._rows.num_seen > 1 else ("one row only" if self._rows.num_seen else "no rows")

    @property
    def num_left_out(self) -> int:
        """Rows whose prediction is NaN."""
        return int(self._num_left_out)

    def _sums(self) -> MetricState:
        return {
            "counts": self._counts,
            "sum_of_shares": self._sum_of_shares,
            "num_left_out": self._num_left_out,
        }

    def _count_batch(self, preds: Numbers, labels: Numbers) -> None:
        pairs = num_pairs(len(preds))
        if pairs:
            right = num_right_pairs(preds, labels)
            self._counts += (right, pairs, 1)
            self._sum_of_shares += right / pairs

    def _check_size(self) -> None:
        if self.exact and self._rows.num_seen > self._rows.max_rows:
            raise BudgetExceeded(
                f"xauc: exact holds at most {self._rows.max_rows:,} rows and there are more; "
                "leave exact out, and pairs of a sample of the rows are counted, or raise memory.limit"
            )

    def _share_of_rows(self) -> float:
        preds, labels = self._rows.rows()
        pairs = num_pairs(len(preds))
        draws = self.max_pairs if self.max_pairs is not None else int(self.sample_ratio * pairs)
        if self.exact or not 0 < draws < min(pairs, MAX_DRAWS):
            return num_right_pairs(preds, labels) / pairs
        return self._share_of_draws(preds, labels, draws)

    def _share_of_draws(self, preds: Numbers, labels: Numbers, num_draws: int) -> float:
        generator = np.random.default_rng(self.seed)
        pairs = num_pairs(len(preds))
        start = generator.integers(0, pairs, 1)
        num_right = 0
        for first in range(0, num_draws, _BLOCK_PAIRS):
            draws = np.arange(first, min(first + _BLOCK_PAIRS, num_draws))
            noise = generator.integers(0, 2**64, len(draws), dtype=np.uint64)
            i, j = pairs_numbered(drawn_numbers(draws, num_draws, pairs, start, noise))
            num_right += int(np.count_nonzero(alike(preds, labels, i, j)))
        return num_right / num_draws


def alike(preds: Numbers, labels: Numbers, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether predictions and labels order the rows i and j alike; infinities are values, equal to themselves."""
    first_p, second_p, first_t, second_t = preds[i], preds[j], labels[i], labels[j]
    rising = (first_p < second_p) & (first_t < second_t)
    return rising | ((first_p > second_p) & (first_t > second_t))


def comparable_rows(preds: Values, target: Values, owner: str) -> tuple[Numbers, Numbers, int]:
    """Predictions and labels of the rows whose prediction is a number, and how many others there are."""
    predicted = np.ravel(as_array(preds)).astype(np.float64)
    labels = np.ravel(as_array(target)).astype(np.float64)
    if len(predicted) != len(labels):
        raise DataError(f"{owner}: {len(predicted)} predictions for {len(labels)} labels")
    if np.isnan(labels).any():
        raise DataError(f"{owner}: the label of row {np.flatnonzero(np.isnan(labels))[0]} is not a number")
    known = ~np.isnan(predicted)
    num_missing = len(known) - int(np.count_nonzero(known))
    return (predicted[known], labels[known], num_missing) if num_missing else (predicted, labels, 0)
