"""The AUC of the largest groups, for the record of an evaluation and the report."""

from collections.abc import Mapping
from typing import Any

from penstock.metrics.wiring import BoundMetric

MOST_GROUPS = 20


def group_auc(metrics: Mapping[str, BoundMetric]) -> list[dict[str, Any]]:
    """`group`, `rows` and `auc` of each, the largest first, of the first grouped AUC among the metrics.

    `auc` is None where a group has rows of one class only.
    """
    for bound in metrics.values():
        if hasattr(bound.metric, "largest_groups"):
            found = bound.metric.largest_groups(MOST_GROUPS)
            return [{"group": group, "rows": num_rows, "auc": area} for group, num_rows, area in found]
    return []
