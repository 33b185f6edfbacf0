"""DeepFM: a wide part, a factorisation machine and an MLP over the same embeddings.

Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction", 2017.
"""

from dataclasses import replace

import torch
from torch import nn

from penstock.models.embeddings import EmbeddingGroup
from penstock.models.layers.factorization import FactorizationMachine, Wide
from penstock.models.layers.mlp import MLP
from penstock.models.model import Model, ModelInputs, Tensors
from penstock.models.row_use import RowUse, one_after_another
from penstock.models.sections import ModelConfig
from penstock.models.sections.rank import DeepFM as DeepFMSection
from penstock.models.table_plan import WideTables, plan_tables
from penstock.tensors.batch import Batch


class DeepFM(Model):
    """logit = wide + fm + deep, or, with `final`, an MLP over the three side by side.

    The groups: `deep` for the MLP, `wide` for the linear part, and `fm` for the factorisation machine;
    without a group `fm` it works on the id features of `deep`. A part without features is left out. With several
    classes there is a logit for each, and a linear layer takes the factorisation machine's vector to them.
    """

    def __init__(self, model: ModelConfig, section: DeepFMSection, inputs: ModelInputs) -> None:
        super().__init__(model, inputs)
        path, num_class = "model_config.deepfm", model.num_class
        wide_tables = WideTables(section.wide_embedding_dim, section.wide_init_fn, path)
        plan = plan_tables(model.feature_groups, inputs.features, wide_tables)
        # Without a group of its own the factorisation machine works on the id features of `deep`, of one width.
        vectors = plan.groups.get("fm") or tuple(slot for slot in plan.groups["deep"] if slot.is_vector)
        if vectors:
            plan = replace(plan, groups={**plan.groups, "fm": vectors})
        self.embedding_group = EmbeddingGroup(plan, inputs.table_device)
        num_wide = 1 if section.final else num_class
        self.wide = Wide(plan.groups["wide"], num_wide, path) if "wide" in plan.groups else None
        self.fm = FactorizationMachine() if vectors else None  # numbers alone give none
        self.num_fm_vectors, self.fm_dim = len(vectors), vectors[0].width if vectors else 0
        fm_dim = self.fm_dim
        self.fm_output = (
            nn.Linear(fm_dim, num_class, bias=False)
            if fm_dim and num_class > 1 and not section.final
            else None
        )
        self.deep = MLP(self.embedding_group.widths["deep"], section.deep, f"{path}.deep")
        joined_dim = int(self.wide is not None) + fm_dim + self.deep.output_dim
        self.final = MLP(joined_dim, section.final, f"{path}.final") if section.final else None
        last = self.deep if self.final is None else self.final
        self.output = nn.Linear(last.output_dim, num_class)

    def predict(self, batch: Batch) -> Tensors:
        groups = self.embedding_group(batch)
        deep = self.deep(groups["deep"])
        parts = [self.wide(groups["wide"])] if self.wide is not None else []
        if self.fm is not None:
            fm = self.fm(groups["fm"].unflatten(1, (self.num_fm_vectors, -1)))
            if self.final is None:
                fm = fm.sum(dim=1, keepdim=True) if self.fm_output is None else self.fm_output(fm)
            parts.append(fm)
        if self.final is not None:
            output = self.output(self.final(torch.cat([*parts, deep], dim=1)))
        else:
            output = sum(reversed(parts), start=self.output(deep))
        return self.tasks[0].predictions(output, batch)

    def row_use(self, training: bool) -> RowUse:
        uses = [part.row_use(training) for part in (self.deep, self.wide, self.final) if part is not None]
        if self.fm is not None:
            uses.append(self.fm.row_use(self.num_fm_vectors, self.fm_dim, training))
        return one_after_another(*uses)
