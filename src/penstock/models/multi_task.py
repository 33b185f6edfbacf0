"""What all models with task towers share: one input, one tower for each task, and how their losses are joined."""

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.models.embeddings import EmbeddingGroup
from penstock.models.layers.mlp import MLP
from penstock.models.model import Model, ModelInputs, Tensors
from penstock.models.pareto import pareto_total
from penstock.models.row_use import RowUse, one_after_another
from penstock.models.sections import ModelConfig
from penstock.models.sections.multi_task import SimpleMultiTask as SimpleMultiTaskSection
from penstock.models.sections.towers import TaskTower
from penstock.models.table_plan import plan_tables
from penstock.models.task import Task
from penstock.runtime.world import Collectives
from penstock.tensors.batch import Batch

# Its gradients need tensors: a traced model calls it as it is.
torch.fx.wrap("pareto_total")


class MultiTaskModel(Model):
    """Tasks that stand on one feature group; a subclass says what each tower sees of it in `tower_inputs`."""

    collectives: Collectives | None = None
    """How ranks find common weights of the tasks, where there are several."""

    def __init__(
        self, model: ModelConfig, towers: Sequence[TaskTower], inputs: ModelInputs, path: str
    ) -> None:
        check_towers(model, towers, path)
        tasks = [Task.of_tower(tower, f"{path}.task_towers[{i}]") for i, tower in enumerate(towers)]
        super().__init__(model, inputs, tasks)
        self.group = model.feature_groups[0].group_name
        plan = plan_tables(model.feature_groups, inputs.features)
        self.embedding_group = EmbeddingGroup(plan, inputs.table_device)
        self.pareto_minimums: list[float] | None = None
        if model.use_pareto_loss_weight:
            self.pareto_minimums = [tower.pareto_min_loss_weight for tower in towers]
            if (total := sum(self.pareto_minimums)) >= 1:
                message = f"pareto_min_loss_weight adds up to {total:g}; it must stay below 1"
                raise ConfigError.at(f"{path}.task_towers", message)

    def tower_inputs(self, joined: torch.Tensor) -> list[torch.Tensor]:
        """What each tower sees of the joined feature group (B, width)."""
        raise NotImplementedError

    def build_towers(self, towers: Sequence[TaskTower], input_dim: int) -> None:
        """Make the towers, all on inputs of one width; their parameters are `towers.{tower_name}_tower...`."""
        self.towers = nn.ModuleDict(
            {
                f"{task.tower}_tower": Tower(input_dim, tower, f"{task.path}.mlp")
                for task, tower in zip(self.tasks, towers, strict=True)
            }
        )

    def shared_parameters(self) -> Iterable[nn.Parameter]:
        """The parameters, beside tables, that every task's loss depends on."""
        return ()

    def predict(self, batch: Batch) -> Tensors:
        return self._predict_from(self.embedding_group(batch)[self.group], batch)

    def learn(self, batch: Batch) -> tuple[torch.Tensor, Tensors, Tensors]:
        """As for every model; with use_pareto_loss_weight the total is weighed so that no task gets worse."""
        if self.pareto_minimums is None:
            return super().learn(batch)
        joined = self.embedding_group(batch)[self.group]
        predictions = self._predict_from(joined, batch)
        losses = self.loss(predictions, batch)
        of_tasks = [torch.stack([losses[name] for name in task.loss_names]).sum() for task in self.tasks]
        shared = [joined, *self.shared_parameters()]
        total = pareto_total(of_tasks, shared, self.pareto_minimums, self.gradient_scale, self.collectives)
        return total, losses, predictions

    def _predict_from(self, joined: torch.Tensor, batch: Batch) -> Tensors:
        predictions: Tensors = {}
        for task, tower, x in zip(self.tasks, self.towers.values(), self.tower_inputs(joined), strict=True):
            predictions |= task.predictions(tower(x), batch)
        return predictions

    def row_use(self, training: bool) -> RowUse:
        """Towers, and in training the gradient of the group; for Pareto weights that of each task, and products."""
        uses = [tower.row_use(training) for tower in self.towers.values() if isinstance(tower, Tower)]
        kept, passing = one_after_another(*uses)
        num_gradients = 1 if self.pareto_minimums is None else len(self.tasks) + 1
        if training:
            kept += num_gradients * self.embedding_group.widths[self.group]
        return RowUse(kept, passing)


class Tower(nn.Module):
    """An MLP, where there is one, and a linear layer to the task's classes."""

    def __init__(self, input_dim: int, tower: TaskTower, path: str) -> None:
        super().__init__()
        self.mlp = MLP(input_dim, tower.mlp, path) if tower.mlp is not None else None
        self.output = nn.Linear(input_dim if self.mlp is None else self.mlp.output_dim, tower.num_class)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.output(x if self.mlp is None else self.mlp(x))
        return output

    def row_use(self, training: bool) -> RowUse:
        return RowUse(0, 0) if self.mlp is None else self.mlp.row_use(training)


def check_towers(model: ModelConfig, towers: Sequence[TaskTower], path: str) -> None:
    """Towers, one group for all of them, and nothing beside them that would change nothing."""
    if not towers:
        raise ConfigError.at(f"{path}.task_towers", "is empty; a model needs a task to learn")
    for index, tower in enumerate(towers):
        if "." in tower.tower_name:
            message = "has a dot; parameters are named after it, with dots between their parts"
            raise ConfigError.at(f"{path}.task_towers[{index}].tower_name", message)
    if len(model.feature_groups) != 1:
        message = f"has {len(model.feature_groups)} groups; the tasks of this model stand on one"
        raise ConfigError.at("model_config.feature_groups", message)
    for key in ("losses", "metrics", "train_metrics"):
        if getattr(model, key):
            message = f"belongs to models with one task; move it into {path}.task_towers"
            raise ConfigError.at(f"model_config.{key}", message)


class SimpleMultiTask(MultiTaskModel):
    """Only the embedding tables are shared. With several classes for each tower: the multi-head model."""

    def __init__(self, model: ModelConfig, section: SimpleMultiTaskSection, inputs: ModelInputs) -> None:
        super().__init__(model, section.task_towers, inputs, "model_config.simple_multi_task")
        self.build_towers(section.task_towers, self.embedding_group.widths[self.group])

    def tower_inputs(self, joined: torch.Tensor) -> list[torch.Tensor]:
        return [joined] * len(self.tasks)
