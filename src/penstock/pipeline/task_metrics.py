"""The metrics of every task of a model, under their result names."""

from collections.abc import Callable
from functools import partial

from penstock.metrics.wiring import BoundMetric, build_metrics, build_train_metrics
from penstock.models.model import Model
from penstock.runtime.collectives import Collectives


def evaluation_metrics(model: Model) -> dict[str, BoundMetric]:
    """What evaluation measures, fresh; names end in `_{tower}` where there are towers."""
    return _of_tasks(model, "metrics", build_metrics)


def training_metrics(model: Model, collectives: Collectives | None = None) -> dict[str, BoundMetric]:
    """What is followed during training, fresh; with `collectives` over the rows of all ranks."""
    return _of_tasks(model, "train_metrics", partial(build_train_metrics, collectives=collectives))


def _of_tasks(model: Model, key: str, build: Callable[..., dict[str, BoundMetric]]) -> dict[str, BoundMetric]:
    found: dict[str, BoundMetric] = {}
    for task in model.tasks:
        built = build(
            getattr(task, key),
            model.prediction_names,
            label=task.label,
            tower=task.tower,
            path=f"{task.path}.{key}",
        )
        for metric in built.values():
            metric.num_classes = task.num_class
        found |= built
    return found
