"""MMoE: experts that every task weighs for itself.

Ma et al., "Modeling Task Relationships in Multi-task Learning with Multi-gate Mixture-of-Experts", 2018.
"""

from collections.abc import Iterable

import torch
from torch import nn

from penstock.models.layers.mlp import Experts, Gate
from penstock.models.model import ModelInputs
from penstock.models.multi_task import MultiTaskModel
from penstock.models.row_use import RowUse, one_after_another
from penstock.models.sections import ModelConfig
from penstock.models.sections.multi_task import MMoE as MMoESection


class MMoE(MultiTaskModel):
    """Every tower sees a mean of the experts, with weights that its own gate finds for each row."""

    def __init__(self, model: ModelConfig, section: MMoESection, inputs: ModelInputs) -> None:
        path = "model_config.mmoe"
        super().__init__(model, section.task_towers, inputs, path)
        width = self.embedding_group.widths[self.group]
        self.experts = Experts(width, section.num_expert, section.expert_mlp, f"{path}.expert_mlp")
        self.gates = nn.ModuleList(
            Gate(width, section.num_expert, section.gate_mlp, f"{path}.gate_mlp") for _ in section.task_towers
        )
        self.build_towers(section.task_towers, self.experts.output_dim)

    def tower_inputs(self, joined: torch.Tensor) -> list[torch.Tensor]:
        experts_BED = self.experts(joined)
        return [gate(joined, experts_BED) for gate in self.gates]

    def shared_parameters(self) -> Iterable[nn.Parameter]:
        """Those of the experts; a gate is its task's own."""
        return self.experts.parameters()

    def row_use(self, training: bool) -> RowUse:
        dim = self.experts.output_dim
        gates = [gate.row_use(training, dim) for gate in self.gates if isinstance(gate, Gate)]
        return one_after_another(super().row_use(training), self.experts.row_use(training), *gates)
