"""Wide & Deep: a linear part beside an MLP.

Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016.
"""

import torch
from torch import nn

from penstock.models.embeddings import EmbeddingGroup
from penstock.models.layers.factorization import Wide
from penstock.models.layers.mlp import MLP
from penstock.models.model import Model, ModelInputs, Tensors
from penstock.models.row_use import RowUse, one_after_another
from penstock.models.sections import ModelConfig
from penstock.models.sections.rank import WideAndDeep as WideAndDeepSection
from penstock.models.table_plan import WideTables, plan_tables
from penstock.tensors.batch import Batch


class WideAndDeep(Model):
    """logit = wide + deep, or, with `final`, an MLP over the two side by side.

    The groups: `wide` for the linear part, `deep` for the MLP. There is a logit for each class.
    """

    def __init__(self, model: ModelConfig, section: WideAndDeepSection, inputs: ModelInputs) -> None:
        super().__init__(model, inputs)
        num_class = model.num_class
        path = "model_config.wide_and_deep"
        wide_tables = WideTables(section.wide_embedding_dim, section.wide_init_fn, path)
        plan = plan_tables(model.feature_groups, inputs.features, wide_tables)
        self.embedding_group = EmbeddingGroup(plan, inputs.table_device)
        self.wide = Wide(plan.groups["wide"], 1 if section.final else num_class, path)
        self.deep = MLP(self.embedding_group.widths["deep"], section.deep, f"{path}.deep")
        self.final = MLP(1 + self.deep.output_dim, section.final, f"{path}.final") if section.final else None
        last = self.deep if self.final is None else self.final
        self.output = nn.Linear(last.output_dim, num_class)

    def predict(self, batch: Batch) -> Tensors:
        groups = self.embedding_group(batch)
        wide, deep = self.wide(groups["wide"]), self.deep(groups["deep"])
        if self.final is not None:
            output = self.output(self.final(torch.cat([wide, deep], dim=1)))
        else:
            output = wide + self.output(deep)
        return self.tasks[0].predictions(output, batch)

    def row_use(self, training: bool) -> RowUse:
        parts = (self.deep, self.wide, self.final)
        return one_after_another(*(part.row_use(training) for part in parts if part is not None))
