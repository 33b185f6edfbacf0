"""One label that a model learns: from logits to named predictions and losses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from penstock.config.errors import ConfigError, DataError
from penstock.models.losses import LOSSES, weighted_mean
from penstock.tensors.batch import Batch

if TYPE_CHECKING:
    from penstock.models.sections import LossConfig


class Task:
    """A label, the losses that bring predictions near it, and the weight of each row."""

    def __init__(
        self,
        losses: Sequence["LossConfig"],
        label: str,
        sample_weight: str | None = None,
        *,
        tower: str | None = None,
        path: str = "model_config.losses",
    ) -> None:
        """With a tower, predictions and losses carry the suffix `_{tower}`. `path` is for messages."""
        if not losses:
            raise ConfigError.at(path, f"is empty; name at least one: {', '.join(LOSSES)}")
        self.label = label
        self.sample_weight = sample_weight
        self.suffix = f"_{tower}" if tower else ""
        chosen = [_chosen_loss(config, f"{path}[{index}]") for index, config in enumerate(losses)]
        self._losses = {name: LOSSES[name].build(section) for name, section in chosen}
        kinds = [LOSSES[name].predictions for name in self._losses]
        self.prediction_names = tuple(dict.fromkeys(name + self.suffix for names in kinds for name in names))

    def predictions(self, logits_B: torch.Tensor) -> dict[str, torch.Tensor]:
        """What the model says about each row."""
        return {f"logits{self.suffix}": logits_B, f"probs{self.suffix}": torch.sigmoid(logits_B)}

    def losses(self, predictions: dict[str, torch.Tensor], batch: Batch) -> dict[str, torch.Tensor]:
        """Each loss, as one number, by its name."""
        logits, labels = predictions[f"logits{self.suffix}"], batch.labels[self.label]
        weights = self._sample_weights(batch)
        try:
            return {
                name + self.suffix: weighted_mean(row_loss(logits, labels), weights)
                for name, row_loss in self._losses.items()
            }
        except DataError as error:
            place = f" ({batch.position})" if batch.position is not None else ""
            raise DataError.at(f"{error}{place}", column=self.label) from error

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """By the name of each loss, the sum of its rows' weights; without sample weights a row weighs 1."""
        weights = self._sample_weights(batch)
        total = float(batch.num_rows if weights is None else weights.sum(dtype=torch.float64))
        return {name + self.suffix: total for name in self._losses}

    def _sample_weights(self, batch: Batch) -> torch.Tensor | None:
        return None if self.sample_weight is None else batch.sample_weights[self.sample_weight]


def _chosen_loss(config: "LossConfig", path: str) -> tuple[str, object]:
    name, section = config.chosen("loss") or config.chosen("sid_loss") or ("", None)
    if name not in LOSSES:
        raise ConfigError.at(f"{path}.{name}", f"not available yet; available: {', '.join(LOSSES)}")
    return name, section
