"""Mean over groups of the exact area under the ROC curve of each."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.metrics.group_names import GroupNames
from penstock.metrics.grouped import GroupedMetric, Totals
from penstock.metrics.largest_groups import largest_groups
from penstock.metrics.metric import Values
from penstock.metrics.segments import GroupAreas, group_areas
from penstock.metrics.spill import LIMIT_BYTES, Rows

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import GroupedAUC as GroupedAucSection

_WEIGHTS: dict[str, Callable[[GroupAreas], NDArray[Any]]] = {
    "none": lambda found: np.ones(len(found.areas)),
    "rows": lambda found: found.num_rows,
    "positives": lambda found: found.num_positives,
}


class GroupedAUC(GroupedMetric):
    """Groups with both classes count, each alike or by its rows or positives; ties count half.

    Predictions need not be probabilities: only their order inside a group matters, and infinities are part of it.
    """

    name = "grouped_auc"
    target_type = np.bool_
    needed = "both classes"

    def __init__(
        self, weight: str = "none", *, limit_bytes: int = LIMIT_BYTES, folder: Path | None = None
    ) -> None:
        if weight not in _WEIGHTS:
            raise DataError(f"grouped_auc: weight is '{weight}'; it is one of {', '.join(_WEIGHTS)}")
        super().__init__(limit_bytes=limit_bytes, folder=folder)
        self.weight = str(weight)
        self._names = GroupNames()

    @classmethod
    def from_section(cls, section: "GroupedAucSection") -> Self:
        """The grouping key says which column `update` is given."""
        return cls(section.weight.value)

    def update(self, preds: Values, target: Values, groups: Any) -> None:
        """Keep the rows of one batch, and ids of groups by which `largest_groups` can call them."""
        super().update(preds, target, groups)
        self._names.see(groups)

    def merge(self, other: Self) -> None:
        """Add the rows that another has seen."""
        super().merge(other)
        self._names = self._names.joined(other._names)

    def reset(self) -> None:
        """Forget every row, and remove what is on disk."""
        super().reset()
        self._names = GroupNames()

    close = reset

    def largest_groups(self, most: int) -> list[tuple[int | str, int, float | None]]:
        """Id, rows and area of the groups with most rows, of those that this rank has seen.

        The area is None where a group has one class. Of ids that are not integers only those of the first rows are
        known; others are given by their hash. It is one more pass over the rows.
        """
        found = largest_groups(self._rows.whole_or_parts(), most)
        names = self._names.of([group.key for group in found])
        return [(name, group.num_rows, group.area) for name, group in zip(names, found, strict=True)]

    def _labels(self, target: NDArray[Any]) -> NDArray[np.bool_]:
        return binary_labels(target, self.name)

    def _totals_of(self, rows: Rows) -> Totals:
        found = group_areas(np.array(rows["key"]), np.array(rows["pred"]), np.array(rows["target"]))
        weights = _WEIGHTS[self.weight](found)
        return np.array(
            [np.sum(found.areas * weights), np.sum(weights), len(found.areas), found.num_groups], np.float64
        )


def binary_labels(target: NDArray[Any], owner: str) -> NDArray[np.bool_]:
    """Labels of 0 and 1 as truth; any other is a DataError."""
    is_positive = np.asarray(target == 1)
    wrong = ~(is_positive | (target == 0))
    if wrong.any():
        raise DataError(f"{owner}: the label {target[wrong][0]} is neither 0 nor 1")
    return is_positive
