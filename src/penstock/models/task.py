"""One label that a model learns: from a model's output to named predictions and losses. B rows, K classes."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

import numpy as np
import torch

from penstock.config.errors import ConfigError, DataError
from penstock.config.registry import result_name
from penstock.metrics.sections import MetricConfig, TrainMetricConfig
from penstock.models.losses import LOSSES, RowLoss
from penstock.models.sections.towers import CustomLoss, JRCLoss, LossConfig, TaskTower
from penstock.runtime.world import Collectives
from penstock.tensors.batch import Batch


@dataclass(frozen=True, slots=True)
class TaskSpace:
    """Which rows a task is about: those whose indicator label is above 0."""

    label: str
    in_weight: float = 1.0
    out_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class _TaskLoss:
    row_loss: RowLoss
    reads: str
    session: str | None


@dataclass
class Task:
    """A label, the losses that bring predictions near it, and the weight of each row.

    With a tower, predictions and losses carry the suffix `_{tower}`.
    """

    loss_configs: Sequence[LossConfig]
    label: str
    sample_weight: str | None = None
    _: KW_ONLY
    tower: str | None = None
    num_class: int = 1
    weight: float = 1.0
    """Factor on the losses."""

    space: TaskSpace | None = None
    mask: str | None = None
    """Column of ones and zeros; classes with 0 cannot be chosen."""

    metrics: Sequence[MetricConfig] = ()
    train_metrics: Sequence[TrainMetricConfig] = ()
    path: str = "model_config"
    """The section that describes the task, for messages."""

    def __post_init__(self) -> None:
        if not self.loss_configs:
            message = f"is empty; name at least one: {', '.join(LOSSES)}"
            raise ConfigError.at(f"{self.path}.losses", message)
        self.suffix = f"_{self.tower}" if self.tower else ""
        self._losses: dict[str, _TaskLoss] = {}
        given: dict[str, None] = {}
        of_logits = ("logits", "probs", "probs1") if self.num_class == 2 else ("logits", "probs")
        for index, config in enumerate(self.loss_configs):
            name, section = config.chosen("loss") or config.chosen("sid_loss") or ("", None)
            path = f"{self.path}.losses[{index}].{name}"
            if name not in LOSSES:
                message = f"semantic-id losses are not supported; there are {', '.join(LOSSES)}"
                raise ConfigError.at(path, message)
            kind = LOSSES[name]
            if not kind.min_classes <= self.num_class <= kind.max_classes:
                more = "" if kind.max_classes == kind.min_classes else " or more"
                raise ConfigError.at(
                    path, f"needs num_class {kind.min_classes}{more}; it is {self.num_class}"
                )
            reads = kind.reads
            row_loss: RowLoss = partial(kind.row_loss, section)
            if isinstance(section, CustomLoss):
                reads = section.reads
                try:
                    row_loss = kind.row_loss(section)
                except ConfigError as error:
                    raise ConfigError.at(path, str(error)) from error
            result = result_name(name, section) + self.suffix
            if result in self._losses:
                message = "the same loss is there twice; results are named by loss"
                raise ConfigError.at(f"{self.path}.losses", message)
            session = section.session_name if isinstance(section, JRCLoss) else None
            self._losses[result] = _TaskLoss(row_loss, reads + self.suffix, session)
            given |= dict.fromkeys(("y",) if reads == "y" else of_logits)
        if self.mask is not None and self.num_class == 1:
            raise ConfigError.at(f"{self.path}.mask_name", "masks classes; with num_class 1 there are none")
        self.loss_names = tuple(self._losses)
        self._predictions = tuple(given)
        self.prediction_names = tuple(name + self.suffix for name in given)

    @classmethod
    def of_tower(cls, tower: TaskTower, path: str) -> "Task":
        """The task of a tower of a multi-task model; `path` is its key in the run file."""
        indicator = tower.task_space_indicator_label
        space = None
        if indicator is not None:
            space = TaskSpace(indicator, tower.in_task_space_weight, tower.out_task_space_weight)
        return cls(
            tower.losses,
            tower.label_name,
            tower.sample_weight_name,
            tower=tower.tower_name,
            num_class=tower.num_class,
            weight=tower.weight,
            space=space,
            mask=tower.mask_name,
            metrics=tower.metrics,
            train_metrics=tower.train_metrics,
            path=path,
        )

    def predictions(self, output_BK: torch.Tensor, batch: Batch) -> dict[str, torch.Tensor]:
        """What the model says about each row. A task of one class has predictions of shape (B,), else (B, K)."""
        if self.mask is not None:
            # The probability of classes that cannot be chosen is then exactly 0.
            output_BK = output_BK.masked_fill(batch.additional_infos[self.mask] == 0, -torch.inf)
        output = output_BK.squeeze(1) if self.num_class == 1 else output_BK
        predictions = {}
        if "y" in self._predictions:
            predictions["y"] = output
        if "logits" in self._predictions:
            probs = torch.sigmoid(output) if self.num_class == 1 else torch.softmax(output, dim=1)
            predictions |= {"logits": output, "probs": probs}
        if "probs1" in self._predictions:
            predictions["probs1"] = predictions["probs"][:, 1]
        return {name + self.suffix: predictions[name] for name in self._predictions}

    def losses(self, predictions: dict[str, torch.Tensor], batch: Batch) -> dict[str, torch.Tensor]:
        """Each loss, as one number, by its name."""
        labels_B, weights_B = batch.labels[self.label], self._row_weights(batch)
        share, losses = batch.step_shares.get(self.suffix), {}
        try:
            for name, loss in self._losses.items():
                sessions = [] if loss.session is None else [batch.additional_infos[loss.session]]
                # Where autocast computes in 16 bits, a loss of so few digits would be rounded away.
                losses_B = loss.row_loss(predictions[loss.reads].float(), labels_B, *sessions)
                losses[name] = weighted_mean(losses_B, weights_B, share) * self.weight
        except DataError as error:
            position = f" ({batch.position})" if batch.position is not None else ""
            raise DataError.at(f"{error}{position}", column=self.label) from error
        return losses

    def weight_of(self, batch: Batch) -> float:
        """The sum of the weights of a batch's rows; a row without any weighs 1."""
        weights = self._row_weights(batch)
        return float(batch.num_rows if weights is None else weights.sum(dtype=torch.float64))

    def _row_weights(self, batch: Batch) -> torch.Tensor | None:
        weights_B = None if self.sample_weight is None else batch.sample_weights[self.sample_weight]
        if self.space is None:
            return weights_B
        inside_B = (batch.labels[self.space.label] > 0).to(torch.float32)
        of_space_B = inside_B * self.space.in_weight + (1.0 - inside_B) * self.space.out_weight
        return of_space_B if weights_B is None else weights_B * of_space_B


@torch.fx.wrap
def weighted_mean(
    losses: torch.Tensor, weights: torch.Tensor | None, share: torch.Tensor | None = None
) -> torch.Tensor:
    """Mean over the rows of loss * weight / (mean weight); 0 when every weight is 0.

    A row of weight 0 changes neither the value nor the gradient: the number of rows cancels out, and its loss, which
    may be infinite, is not looked at. With a share (`with_step_shares`) the mean counts by it in a step of several
    ranks; that of a rank without rows is 0.
    """
    if weights is None:
        mean = losses.mean()
    else:
        weights = weights.to(losses.dtype)
        total = weights.sum()
        counted = torch.where(weights == 0, torch.zeros_like(losses), losses)
        mean = (counted * weights).sum() / torch.where(total == 0, torch.ones_like(total), total)
    return mean if share is None else torch.where(share == 0, torch.zeros_like(mean), mean * share)


def with_step_shares(batch: Batch, tasks: Sequence[Task], collectives: Collectives) -> Batch:
    """The batch with what its rows weigh in each task, beside the mean of all ranks; every rank must call.

    Ranks average the gradients of their own losses. So a rank's loss counts by this weight: then the average is the
    loss of one process with all rows. What ranks exchange is known before the step: one number for each task.
    """
    own = np.array([task.weight_of(batch) for task in tasks])
    *weights, num_ranks = collectives.sum(np.append(own, 1.0))
    shares = own * num_ranks / np.where(np.array(weights) == 0, 1.0, weights)
    return replace(
        batch,
        step_shares={
            task.suffix: torch.tensor(share, dtype=torch.float32)
            for task, share in zip(tasks, shares, strict=True)
        },
    )
