"""The evaluation loop: one pass, bounded memory, every row once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from penstock.metrics.wiring import BoundMetric
from penstock.tensors.batch import Batch

Predictions = dict[str, torch.Tensor]


class Scoring(Protocol):
    """A model that can predict and say how wrong it was."""

    def predict(self, batch: Batch) -> Predictions: ...

    def loss(self, predictions: Predictions, batch: Batch) -> dict[str, torch.Tensor]: ...


@dataclass(slots=True)
class LossMeans:
    """Every loss as a metric: its mean, weighted by rows."""

    rows: int = 0
    sums: dict[str, float] | None = None

    def update(self, losses: dict[str, torch.Tensor], num_rows: int) -> None:
        """Count one batch."""
        self.rows += num_rows
        self.sums = self.sums or dict.fromkeys(losses, 0.0)
        for name, value in losses.items():
            self.sums[name] += float(value) * num_rows

    def compute(self) -> dict[str, float]:
        """Mean of every loss."""
        return {name: total / self.rows for name, total in (self.sums or {}).items()}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one evaluation found."""

    metrics: dict[str, float]
    losses: dict[str, float]
    rows: int


def evaluate(
    model: nn.Module,
    scoring: Scoring,
    batches: Iterable[Batch],
    metrics: Mapping[str, BoundMetric],
    on_batch: Callable[[Batch], None] = lambda batch: None,
) -> Evaluation:
    """Score every batch. `model` is put into evaluation mode meanwhile, and back into what it was."""
    losses = LossMeans()
    with evaluation_mode(model):
        for batch in batches:
            predictions = scoring.predict(batch)
            for metric in metrics.values():
                metric.update(predictions, batch.labels)
            losses.update(scoring.loss(predictions, batch), batch.num_rows)
            on_batch(batch)
    values = {name: metric.compute() for name, metric in metrics.items()}
    return Evaluation(values, losses.compute(), losses.rows)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """No dropout, no gradients; the mode from before comes back at the end."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
