"""What the metrics of a run may hold: a share of the plan, and each metric's part of it."""

from collections.abc import Mapping

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.metrics.metric import divided, hold_within, needs_of
from penstock.metrics.wiring import BoundMetric
from penstock.runtime.budget import MemoryBudget, Share

METRICS = "metrics"
"""The share of what an evaluation measures, behind the word for its stream."""
TRAIN_METRICS = "train metrics"
NOTEWORTHY_BYTES = MIB
"""Less than this finds room in what the plan leaves free."""
MOST_OF_THE_REST = 4
"""Metrics that need less than they could use get a quarter of what is left, and the data path the rest."""


def share_metrics(
    budget: MemoryBudget, name: str, metrics: Mapping[str, BoundMetric], num_rows: int, section: str = METRICS
) -> None:
    """A share for metrics that will see so many rows (those of training: in a step). `section` holds them in the file.

    Metrics that keep rows need some of them in memory at the least, and an exact xauc all of them.
    """
    needs = {key: needs_of(bound.metric, num_rows, bound.num_classes) for key, bound in metrics.items()}
    least, ample = (sum(each) for each in zip(*needs.values(), strict=True)) if needs else (0, 0)
    if ample < NOTEWORTHY_BYTES:
        return
    largest = max(needs, key=lambda key: needs[key].min_bytes)
    left = max(0, budget.unshared_bytes)
    if least > left:
        raise BudgetExceeded(
            f"{name} need {format_size(least)} at the least, {largest} {format_size(needs[largest].min_bytes)} of "
            f"it, but only {format_size(left)} of {format_size(budget.limit_bytes)} are left; "
            f"{_advice(metrics[largest], section)}, or raise memory.limit"
        )
    total = max(least, min(ample, left // MOST_OF_THE_REST))
    given = divided(needs, total)
    budget.share(name, total, setting=f"{section}.{max(given, key=given.__getitem__)}")


def bound_metrics(metrics: Mapping[str, BoundMetric], share: Share | None, num_rows: int) -> None:
    """Tell each metric its part of the share; without a share they keep to limits of their own."""
    if share is None:
        return
    needs = {key: needs_of(bound.metric, num_rows, bound.num_classes) for key, bound in metrics.items()}
    for key, limit_bytes in divided(needs, share.limit_bytes).items():
        hold_within(metrics[key].metric, limit_bytes, num_rows)


def _advice(bound: BoundMetric, section: str) -> str:
    """How to do with less than the metric that needs most."""
    is_exact = getattr(getattr(bound.metric, "metric", bound.metric), "exact", False)
    return f"leave out exact of {section}.{bound.name}" if is_exact else f"leave out {section}.{bound.name}"
