"""The metrics of every task of a model, under their result names."""

from penstock.metrics.wiring import BoundMetric, build_metrics, build_train_metrics
from penstock.models.model import Model
from penstock.runtime.collectives import Collectives


def evaluation_metrics(model: Model) -> dict[str, BoundMetric]:
    """What evaluation measures, fresh; names end in `_{tower}` where there are towers."""
    return {
        name: metric
        for task in model.tasks
        for name, metric in build_metrics(
            task.metrics,
            model.prediction_names,
            label=task.label,
            tower=task.tower,
            path=f"{task.path}.metrics",
        ).items()
    }


def training_metrics(model: Model, collectives: Collectives | None = None) -> dict[str, BoundMetric]:
    """What is followed during training, fresh; with `collectives` over the rows of all ranks."""
    return {
        name: metric
        for task in model.tasks
        for name, metric in build_train_metrics(
            task.train_metrics,
            model.prediction_names,
            label=task.label,
            tower=task.tower,
            path=f"{task.path}.train_metrics",
            collectives=collectives,
        ).items()
    }
