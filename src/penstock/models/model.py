"""What every model is: a module that predicts, and the loss of its predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.models.embeddings import EmbeddingGroup
from penstock.models.task import Task
from penstock.tensors.batch import Batch

if TYPE_CHECKING:
    from penstock.features import Feature
    from penstock.models.sections import ModelConfig

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """What a model is built on, beside its own section of the run file."""

    features: Sequence["Feature"]
    label_fields: Sequence[str]
    sample_weight_fields: Sequence[str] = ()
    table_device: torch.device | str | None = None
    """Where embedding tables are allocated; "meta" for a model that is sharded next."""


class Model(nn.Module):
    """Gives named predictions for a batch, and named losses for its predictions and labels."""

    embedding_group: EmbeddingGroup
    """The model's tables and the groups that are joined from them."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        super().__init__()
        self.tasks = tuple(tasks)

    @property
    def prediction_names(self) -> tuple[str, ...]:
        """The keys of what `predict` gives; metrics are wired to them."""
        return tuple(name for task in self.tasks for name in task.prediction_names)

    def predict(self, batch: Batch) -> Tensors:
        """Named predictions, one value for each row."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Tensors:
        """The same as `predict`."""
        return self.predict(batch)

    def loss(self, predictions: Tensors, batch: Batch) -> Tensors:
        """Named losses, one number each; what is minimised is their sum."""
        return {name: value for task in self.tasks for name, value in task.losses(predictions, batch).items()}

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """What the rows of a batch weigh together in each loss; means of batches are joined by these."""
        return {name: weight for task in self.tasks for name, weight in task.loss_weights(batch).items()}


class TrainWrapper(nn.Module):
    """A model and its loss in one forward pass: the module that is sharded and trained."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> tuple[torch.Tensor, tuple[Tensors, Tensors, Batch]]:
        """The total loss, and beside it losses and predictions (without gradients) and the batch."""
        predictions = self.model.predict(batch)
        losses = self.model.loss(predictions, batch)
        total = torch.stack(list(losses.values())).sum()
        return total, (detached(losses), detached(predictions), batch)


def detached(tensors: Tensors) -> Tensors:
    """The same values without gradients."""
    return {name: tensor.detach() for name, tensor in tensors.items()}


def single_task(model: "ModelConfig", inputs: ModelInputs) -> Task:
    """The task of a model with one output: the first label, the first sample weight, one class."""
    if not inputs.label_fields:
        raise ConfigError.at("data_config.label_fields", "is empty; a model needs a label to learn")
    if model.num_class != 1:
        raise ConfigError.at("model_config.num_class", f"{model.num_class} classes are not available yet")
    return Task(model.losses, inputs.label_fields[0], next(iter(inputs.sample_weight_fields), None))
