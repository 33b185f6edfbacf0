"""Share of pairs in the right order inside each group, from a bounded number of pairs of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.features.hashes import mixed
from penstock.metrics.grouped import GroupedMetric, Totals
from penstock.metrics.segments import segment_starts
from penstock.metrics.spill import LIMIT_BYTES, Rows
from penstock.metrics.xauc_pairs import drawn_numbers, pairs_numbered

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import GroupedXAUC as GroupedXaucSection

_BLOCK_DRAWS = 1 << 17
"""Draws of many groups at a time: about 10 MiB."""


class GroupedXAUC(GroupedMetric):
    """XAUC of each group with two rows or more, weighted by its rows.

    In a group with more than `max_pairs_per_group` pairs so many different ones are drawn. The draw depends on
    the seed, the group's id and its rows alone, so that batches, their order and the number of ranks change nothing.
    """

    name = "grouped_xauc"
    target_type = np.float64
    needed = "two rows or more"

    def __init__(
        self,
        max_pairs_per_group: int = 100,
        seed: int = 0,
        *,
        limit_bytes: int = LIMIT_BYTES,
        folder: Path | None = None,
    ) -> None:
        if max_pairs_per_group < 1:
            raise DataError(
                f"grouped_xauc: max_pairs_per_group is {max_pairs_per_group}; it must be at least 1"
            )
        super().__init__(limit_bytes=limit_bytes, folder=folder)
        self.max_pairs_per_group, self.seed = max_pairs_per_group, seed

    @classmethod
    def from_section(cls, section: "GroupedXaucSection") -> Self:
        """The grouping key says which column `update` is given."""
        return cls(section.max_pairs_per_group)

    def _labels(self, target: NDArray[Any]) -> NDArray[Any]:
        labels = target if target.dtype == np.float32 else target.astype(np.float64)
        if np.isnan(labels).any():
            raise DataError(
                f"{self.name}: the label of row {np.flatnonzero(np.isnan(labels))[0]} is not a number"
            )
        return labels

    def _totals_of(self, rows: Rows) -> Totals:
        keys, preds, target = (np.array(rows[name]) for name in ("key", "pred", "target"))
        order = np.lexsort((target, preds, keys))
        keys, preds, target = keys[order], preds[order], target[order]
        starts = segment_starts(keys)
        sizes = np.diff(starts, append=len(keys))
        num_groups = len(starts)
        starts, sizes = starts[sizes > 1], sizes[sizes > 1]
        totals = np.array([0.0, 0.0, len(starts), num_groups])
        for first, last in _blocks(self._num_draws(sizes)):
            groups = slice(first, last)
            shares = self._shares(keys[starts[groups]], starts[groups], sizes[groups], preds, target)
            totals[:2] += np.sum(shares * sizes[groups]), np.sum(sizes[groups])
        return totals

    def _num_draws(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        num_draws: NDArray[np.int64] = np.minimum(sizes * (sizes - 1) // 2, self.max_pairs_per_group)
        return num_draws

    def _shares(
        self,
        keys: NDArray[np.uint64],
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        preds: NDArray[Any],
        target: NDArray[Any],
    ) -> NDArray[np.float64]:
        """The share of each group; its rows stand in the order of their predictions from its start on."""
        num_draws = self._num_draws(sizes)
        ends = np.cumsum(num_draws)
        group = np.repeat(np.arange(len(keys)), num_draws)
        draws = np.arange(len(group)) - (ends - num_draws)[group]
        words = mixed(keys ^ np.uint64(self.seed % 2**64))
        num_all = sizes * (sizes - 1) // 2
        circle_starts = (words % num_all.astype(np.uint64)).astype(np.int64)
        noise = mixed(words[group] + draws.astype(np.uint64))
        numbers = drawn_numbers(draws, num_draws[group], num_all[group], circle_starts[group], noise)
        i, j = (starts[group] + rows for rows in pairs_numbered(numbers))
        is_right = (preds[i] < preds[j]) & (target[i] < target[j])
        return np.add.reduceat(is_right, ends - num_draws, dtype=np.int64) / num_draws


def _blocks(num_draws: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of groups with about as many draws as may be held at a time."""
    block_of = np.cumsum(num_draws) // _BLOCK_DRAWS
    firsts = segment_starts(block_of).tolist()
    yield from zip(firsts, [*firsts[1:], len(num_draws)], strict=True) if firsts else ()
