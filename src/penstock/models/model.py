"""What every model is: a module that predicts, and the loss of its predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from penstock.config.errors import ConfigError, PenstockError
from penstock.features.feature import Feature
from penstock.models.embeddings import EmbeddingGroup
from penstock.models.layers.sequences import SequenceEncoder
from penstock.models.row_use import FLOAT_BYTES, RowUse, one_after_another
from penstock.models.sections import ModelConfig
from penstock.models.task import Task
from penstock.tensors.batch import Batch

Tensors = dict[str, torch.Tensor]
OUTPUT_FLOATS = 8
"""Of each class of a task: logits, predictions, what the loss is worked out from, and gradients."""


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """What a model is built on, beside its own section of the run file."""

    features: Sequence[Feature]
    label_fields: Sequence[str]
    sample_weight_fields: Sequence[str] = ()
    table_device: torch.device | str | None = None
    """Where embedding tables are allocated; "meta" for a model that is sharded next."""


class ModelMetrics(Protocol):
    """The metrics of a model's tasks, added up over batches. Models do not know which there are."""

    def update(self, predictions: Tensors, batch: Batch) -> None: ...

    def compute(self) -> dict[str, float]: ...

    def reset(self) -> None: ...


class Model(nn.Module):
    """Gives named predictions for a batch, and named losses for its predictions and labels."""

    embedding_group: EmbeddingGroup
    """The model's tables and the groups that are joined from them."""

    gradient_scale: float = 1.0
    """What a model multiplies losses by whose gradients it takes itself: in FP16 small ones would be 0."""

    def __init__(self, model: ModelConfig, inputs: ModelInputs, tasks: Sequence[Task] = ()) -> None:
        """Without tasks there is one: the first label with the losses of the model and the first sample weight."""
        super().__init__()
        if not tasks:
            if not inputs.label_fields:
                raise ConfigError.at("data_config.label_fields", "is empty; a model needs a label to learn")
            if model.use_pareto_loss_weight:
                problem = "weighs tasks; this model has only one"
                raise ConfigError.at("model_config.use_pareto_loss_weight", problem)
            task = Task(
                model.losses,
                inputs.label_fields[0],
                next(iter(inputs.sample_weight_fields), None),
                num_class=model.num_class,
                metrics=model.metrics,
                train_metrics=model.train_metrics,
            )
            tasks = [task]
        self.tasks = tuple(tasks)
        self.prediction_names = tuple(name for task in tasks for name in task.prediction_names)
        self._metrics: ModelMetrics | None = None
        self._train_metrics: ModelMetrics | None = None

    def predict(self, batch: Batch) -> Tensors:
        """Named predictions, one value for each row, or one for each class."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Tensors:
        return self.predict(batch)

    def loss(self, predictions: Tensors, batch: Batch) -> Tensors:
        """Named losses, one number each; what is minimised is their sum."""
        return {name: value for task in self.tasks for name, value in task.losses(predictions, batch).items()}

    def learn(self, batch: Batch) -> tuple[torch.Tensor, Tensors, Tensors]:
        predictions = self.predict(batch)
        losses = self.loss(predictions, batch)
        return torch.stack(list(losses.values())).sum(), losses, predictions

    def row_use(self, training: bool) -> RowUse:
        """What the layers hold of a row, beside the groups that they read.

        Models of which no more is known count two values for each output of a linear layer.
        """
        widths = [module.out_features for module in self.modules() if isinstance(module, nn.Linear)]
        return RowUse(2 * sum(widths) if training else 0, 2 * max(widths, default=0))

    def row_bytes(self, training: bool, data_row_bytes: int) -> int:
        """What the model holds of a row in a step, or, without `training`, while it scores.

        Rows take `data_row_bytes` as they are read.
        """
        outputs = RowUse(OUTPUT_FLOATS * sum(task.num_class for task in self.tasks), 0)
        encoders = [module for module in self.modules() if isinstance(module, SequenceEncoder)]
        floats = [encoder.floats_per_row for encoder in encoders]
        of_steps = RowUse(sum(floats) if training else 0, max(floats, default=0))
        parts = self.embedding_group.row_use(data_row_bytes), of_steps, self.row_use(training), outputs
        return int(FLOAT_BYTES * sum(one_after_another(*parts)))

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """What the rows of a batch weigh together in each loss; means of batches are joined by these."""
        weights: dict[str, float] = {}
        for task in self.tasks:
            weights |= dict.fromkeys(task.loss_names, task.weight_of(batch))
        return weights

    def attach_metrics(self, metrics: ModelMetrics, train_metrics: ModelMetrics) -> None:
        """Give the model its metrics; `penstock.build_model` does so."""
        self._metrics, self._train_metrics = metrics, train_metrics

    def update_metric(self, predictions: Tensors, batch: Batch) -> None:
        _attached(self._metrics).update(predictions, batch)

    def compute_metric(self) -> dict[str, float]:
        """The metrics of evaluation over the batches since the last call; the next ones count from zero."""
        metrics = _attached(self._metrics)
        values = metrics.compute()
        metrics.reset()
        return values

    def update_train_metric(self, predictions: Tensors, batch: Batch) -> None:
        _attached(self._train_metrics).update(predictions, batch)

    def compute_train_metric(self) -> dict[str, float]:
        """The metrics of training as they stand; they go on, and fade by themselves."""
        return _attached(self._train_metrics).compute()


class TrainWrapper(nn.Module):
    """A model and its loss in one forward pass: the module that is sharded and trained."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> tuple[torch.Tensor, tuple[Tensors, Tensors, Batch]]:
        """The total loss, and beside it losses and predictions (without gradients) and the batch."""
        total, losses, predictions = self.model.learn(batch)
        losses = {name: loss.detach() for name, loss in losses.items()}
        return total, (losses, {name: values.detach() for name, values in predictions.items()}, batch)


def _attached(metrics: ModelMetrics | None) -> ModelMetrics:
    if metrics is None:
        raise PenstockError(
            "this model has no metrics; build it with penstock.build_model(run), "
            "or call model.attach_metrics(metrics, train_metrics)"
        )
    return metrics
