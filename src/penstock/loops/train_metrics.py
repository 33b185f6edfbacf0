"""Metrics of the rows that a model is trained on, as they pass."""

from collections.abc import Mapping

import torch

from penstock.metrics.wiring import BoundMetric
from penstock.runtime.state import State
from penstock.tensors.batch import Batch


class TrainMetrics:
    """Told every step's predictions, which were made before the step; their states are part of the checkpoint."""

    def __init__(self, metrics: Mapping[str, BoundMetric]) -> None:
        self._metrics = metrics

    def update(self, predictions: Mapping[str, torch.Tensor], batch: Batch) -> None:
        """Add one batch. Predictions of less than 32 bits, as autocast gives them, are widened."""
        if not self._metrics:
            return
        wide = {name: values.float() for name, values in predictions.items()}
        for metric in self._metrics.values():
            metric.update(wide, batch.labels)

    def compute(self) -> dict[str, float]:
        """The values now, by name."""
        return {name: metric.compute() for name, metric in self._metrics.items()}

    def state_dict(self) -> State:
        """What each metric has counted."""
        return {name: metric.metric.state_dict() for name, metric in self._metrics.items()}

    def load_state_dict(self, state: State) -> None:
        """Go on counting; a metric that the run did not have before starts anew."""
        for name, metric in self._metrics.items():
            if name in state:
                metric.metric.load_state_dict(state[name])
