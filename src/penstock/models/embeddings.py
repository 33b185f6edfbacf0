"""Feature groups of a batch as tensors: ids through embedding tables, numbers as they are."""

from collections.abc import Iterable

import torch
from torch import nn
from torchrec.modules.embedding_configs import EmbeddingBagConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from penstock.models.table_plan import Table, TablePlan
from penstock.tensors.batch import BASE, Batch

_DENSE = "dense"


class EmbeddingGroup(nn.Module):
    """All tables of a model, and the groups that are joined from them.

    Tables read without weights and with weights are in two collections, because a collection is one or the
    other. With `device="meta"` nothing is allocated: sharding makes the tables where they belong.
    """

    def __init__(self, plan: TablePlan, device: torch.device | str | None = None) -> None:
        super().__init__()
        self.plan = plan
        self.tables = _collection(plan.tables.values(), False, device)
        self.weighted_tables = _collection(plan.tables.values(), True, device)
        self.widths = {name: sum(slot.width for slot in slots) for name, slots in plan.groups.items()}
        # Where the columns of each slot are found: which output, and under which key.
        self._sources: dict[str, list[tuple[str, str]]] = {name: [] for name in plan.groups}
        for name, slots in plan.groups.items():
            for slot in slots:
                source = _DENSE, slot.feature
                if slot.table is not None:
                    weighted = plan.tables[slot.table].weighted
                    read = [
                        t
                        for t in plan.tables.values()
                        if t.weighted == weighted and slot.feature in t.features
                    ]
                    # torchrec calls a feature that reads several tables of one collection `feature@table`.
                    key = slot.feature if len(read) == 1 else f"{slot.feature}@{slot.table}"
                    source = "weighted_tables" if weighted else "tables", key
                self._sources[name].append(source)
        self._has_dense = any(slot.table is None for slots in plan.groups.values() for slot in slots)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Each group as one tensor (rows, width), its features side by side in the order of the run file.

        Columns are taken by name: their order in the collections' output changes with sharding.
        """
        columns = {}
        if self.tables is not None:
            ids = batch.sparse_features[BASE]
            ids = without_weights(ids) if self.plan.ids_are_weighted else ids
            columns["tables"] = self.tables(ids).to_dict()
        if self.weighted_tables is not None:
            columns["weighted_tables"] = self.weighted_tables(batch.sparse_features[BASE]).to_dict()
        if self._has_dense:
            columns[_DENSE] = batch.dense_features[BASE].to_dict()
        return {
            name: torch.cat([columns[collection][key] for collection, key in sources], dim=1)
            for name, sources in self._sources.items()
        }


@torch.fx.wrap
def without_weights(ids: KeyedJaggedTensor) -> KeyedJaggedTensor:
    """The same ids, for tables that are read without weights.

    A sharded collection would use weights that are there, even if they are all 1: its gradient of a mean is
    then that of a sum. Only called where batches carry weights, because pipelines cannot look through it.
    """
    return KeyedJaggedTensor(
        keys=ids.keys(),
        values=ids.values(),
        lengths=ids.lengths(),
        offsets=ids.offsets_or_none(),
        stride=ids.stride(),
        length_per_key=ids.length_per_key_or_none(),
        offset_per_key=ids.offset_per_key_or_none(),
    )


def _collection(
    tables: Iterable[Table], is_weighted: bool, device: torch.device | str | None
) -> EmbeddingBagCollection | None:
    """One torchrec collection of these tables; None when there are none. Frozen tables take no gradient."""
    by_name = {table.name: table for table in tables if table.weighted == is_weighted}
    if not by_name:
        return None
    configs = [
        EmbeddingBagConfig(
            name=table.name,
            num_embeddings=table.num_rows,
            embedding_dim=table.dim,
            feature_names=list(table.features),
            pooling=PoolingType[table.pooling.upper()],
            init_fn=table.initializer,
        )
        for table in by_name.values()
    ]
    on_device = torch.device(device) if device is not None else None
    collection = EmbeddingBagCollection(tables=configs, is_weighted=is_weighted, device=on_device)
    for name, bag in collection.embedding_bags.items():
        bag.weight.requires_grad_(by_name[name].trainable)
    return collection
