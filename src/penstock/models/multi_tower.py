"""Towers: an MLP on each feature group, attention on each history, and an MLP over all of them side by side.

Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", 2018.
"""

import torch
from torch import nn

from penstock.models.embeddings import EmbeddingGroup
from penstock.models.layers.mlp import MLP
from penstock.models.layers.sequences import DINLayer
from penstock.models.model import Model, ModelInputs, Tensors
from penstock.models.row_use import RowUse, one_after_another
from penstock.models.sections import ModelConfig
from penstock.models.sections.rank import MultiTower as MultiTowerSection
from penstock.models.sections.rank import MultiTowerDIN as MultiTowerDINSection
from penstock.models.table_plan import plan_tables
from penstock.tensors.batch import Batch


class MultiTower(Model):
    """logit = linear(final([tower 1, tower 2, ...])), one for each class; a tower without `mlp` is its group."""

    def __init__(
        self,
        model: ModelConfig,
        section: MultiTowerSection,
        inputs: ModelInputs,
        path: str = "model_config.multi_tower",
    ) -> None:
        super().__init__(model, inputs)
        plan = plan_tables(model.feature_groups, inputs.features)
        self.embedding_group = EmbeddingGroup(plan, inputs.table_device)
        self.tower_inputs = [tower.input for tower in section.towers]
        self.towers = nn.ModuleList()
        widths = self.embedding_group.widths
        joined_dim = 0
        for index, tower in enumerate(section.towers):
            layers = MLP(widths[tower.input], tower.mlp, f"{path}.towers[{index}].mlp") if tower.mlp else None
            self.towers.append(nn.Identity() if layers is None else layers)
            joined_dim += widths[tower.input] if layers is None else layers.output_dim
        self.din_inputs: list[str] = []
        self.din_towers = nn.ModuleList()
        for index, din in enumerate(section.din_towers if isinstance(section, MultiTowerDINSection) else ()):
            sequence = plan.sequences[din.input]
            query_dim, sequence_dim = sequence.query_dim, sequence.sequence_dim
            layer = DINLayer(query_dim, sequence_dim, din.attn_mlp, f"{path}.din_towers[{index}]")
            layer.planned_steps = sequence.planned_steps
            self.din_inputs.append(din.input)
            self.din_towers.append(layer)
            joined_dim += layer.output_dim
        self.final = MLP(joined_dim, section.final, f"{path}.final")
        self.output = nn.Linear(self.final.output_dim, model.num_class)

    def predict(self, batch: Batch) -> Tensors:
        groups = self.embedding_group(batch)
        parts = [tower(groups[name]) for name, tower in zip(self.tower_inputs, self.towers, strict=True)] + [
            tower(groups[f"{name}.query"], groups[f"{name}.sequence"], groups[f"{name}.sequence_length"])
            for name, tower in zip(self.din_inputs, self.din_towers, strict=True)
        ]
        output = self.output(self.final(torch.cat(parts, dim=1)))
        return self.tasks[0].predictions(output, batch)

    def row_use(self, training: bool) -> RowUse:
        layers = [*self.towers, self.final]
        return one_after_another(*(layer.row_use(training) for layer in layers if isinstance(layer, MLP)))


class MultiTowerDIN(MultiTower):
    """With `din_towers`: attention of the query of a SEQUENCE group to its steps."""

    def __init__(self, model: ModelConfig, section: MultiTowerDINSection, inputs: ModelInputs) -> None:
        super().__init__(model, section, inputs, "model_config.multi_tower_din")
