"""SimpleMultiTask: one tower for each task, all on the same embeddings."""

from typing import TYPE_CHECKING

import torch

from penstock.models.model import ModelInputs
from penstock.models.multi_task import MultiTaskModel

if TYPE_CHECKING:
    from penstock.models.sections.model import ModelConfig
    from penstock.models.sections.multi_task import SimpleMultiTask as SimpleMultiTaskSection


class SimpleMultiTask(MultiTaskModel):
    """Only the embedding tables are shared. With several classes for each tower: the multi-head model."""

    def __init__(self, model: "ModelConfig", section: "SimpleMultiTaskSection", inputs: ModelInputs) -> None:
        super().__init__(model, section.task_towers, inputs, "model_config.simple_multi_task")
        self.build_towers(section.task_towers, self.embedding_group.width(self.group))

    def tower_inputs(self, joined: torch.Tensor) -> list[torch.Tensor]:
        """The same for all."""
        return [joined] * len(self.tasks)
