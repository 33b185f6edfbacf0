"""The evaluation loop: one pass, bounded memory, every row once."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from penstock.runtime.collectives import Collectives
from penstock.tensors.batch import Batch
from penstock.training.task_metrics import TaskMetrics

Predictions = dict[str, torch.Tensor]


class Scoring(Protocol):
    """A model that can predict and say how wrong it was."""

    def predict(self, batch: Batch) -> Predictions: ...

    def loss(self, predictions: Predictions, batch: Batch) -> dict[str, torch.Tensor]: ...

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """What the rows of a batch weigh together in each loss."""
        ...


NO_WEIGHT = "no row weighs anything"
"""Why a loss is undefined."""


@dataclass(slots=True)
class LossMeans:
    """Every loss as a metric: its mean over all rows, the same however these are cut into batches."""

    sums: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def update(self, losses: Mapping[str, torch.Tensor], weights: Mapping[str, float]) -> None:
        """Count one batch: its mean losses, and what its rows weigh in each."""
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value) * weights[name]
            self.weights[name] = self.weights.get(name, 0.0) + weights[name]

    def compute(self) -> dict[str, float]:
        """Mean of every loss; NaN where no row weighs anything."""
        return {
            name: total / self.weights[name] if self.weights[name] else math.nan
            for name, total in self.sums.items()
        }

    def reduced(self, collectives: Collectives) -> "LossMeans":
        """The means over the rows of all ranks; every rank must call, also one that has seen no batch."""
        own = json.dumps([self.sums, self.weights]).encode()
        whole = LossMeans()
        for part in collectives.gather(np.frombuffer(own, np.uint8)):
            for mine, theirs in zip((whole.sums, whole.weights), json.loads(part.tobytes()), strict=True):
                for name, value in theirs.items():
                    mine[name] = mine.get(name, 0.0) + value
        return whole

    def remarks(self) -> dict[str, str]:
        """By loss: why it is undefined."""
        return {name: NO_WEIGHT for name, weight in self.weights.items() if not weight}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one evaluation found."""

    metrics: dict[str, float]
    losses: dict[str, float]
    rows: int
    calibration: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Predicted and observed rates by bins, for the metrics that have counted them."""

    group_auc: list[dict[str, Any]] = field(default_factory=list)
    """`group`, `rows` and `auc` of the largest groups, where a metric groups rows."""

    remarks: dict[str, str] = field(default_factory=dict)
    """By metric: why it is undefined, how many rows it is without, how many groups it is over."""


def evaluate(
    model: nn.Module,
    scoring: Scoring,
    batches: Iterable[Batch],
    metrics: TaskMetrics,
    on_batch: Callable[[Batch], None] = lambda batch: None,
    collectives: Collectives | None = None,
) -> Evaluation:
    """Score every batch. `model` is put into evaluation mode meanwhile, and back into what it was.

    With `collectives`, losses and rows are those of all ranks, as are metrics that were given the same.
    """
    losses, num_rows = LossMeans(), 0
    with evaluation_mode(model):
        for batch in batches:
            predictions = scoring.predict(batch)
            metrics.update(predictions, batch)
            losses.update(scoring.loss(predictions, batch), scoring.loss_weights(batch))
            num_rows += batch.num_rows
            on_batch(batch)
    values = metrics.compute()
    if collectives is not None:
        losses = losses.reduced(collectives)
        num_rows = int(collectives.sum(np.array(num_rows)))
    remarks = {**losses.remarks(), **metrics.remarks()}
    return Evaluation(values, losses.compute(), num_rows, remarks=remarks)


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
