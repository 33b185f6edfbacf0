"""Metrics of classes against the number of classes of their task."""

from collections.abc import Iterator

from penstock.config.errors import Problem
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions


def class_findings(task: ModelConfig | TowerOptions) -> Iterator[Problem]:
    """Metrics of a task that have no meaning with its num_class."""
    for key in ("metrics", "train_metrics"):
        for index, metric in enumerate(getattr(task, key)):
            if metric.multiclass_auc is not None and task.num_class < 2:
                yield Problem((key, index, "multiclass_auc"), "needs num_class 2 or more; it is 1: use auc")
            top_k = 1 if metric.accuracy is None else metric.accuracy.top_k
            if top_k > 1 and top_k >= task.num_class:
                yield Problem((key, index, "accuracy", "top_k"), _too_large(top_k, task.num_class))


def _too_large(top_k: int, num_class: int) -> str:
    if num_class < 2:
        return f"is {top_k}, but with num_class 1 a threshold decides; leave it out"
    return f"is {top_k} of {num_class} classes, with which every row would be right; lower it"
