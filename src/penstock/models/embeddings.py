"""Feature groups of a batch as tensors: ids through embedding tables, numbers as they are or as vectors.

B rows, T steps of the longest sequence, S steps of all rows, D columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig, EmbeddingConfig, PoolingType
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from penstock.models.layers.jagged import join_steps, pad_steps, pool, step_vectors
from penstock.models.layers.joining import join, take_columns
from penstock.models.layers.number_embeddings import build_number_embedding
from penstock.models.layers.sequences import build_encoder
from penstock.models.row_use import FLOAT_BYTES, RowUse
from penstock.models.table_plan import GrowingRows, SequenceGroup, Slot, Table, TablePlan
from penstock.tensors.batch import BASE, Batch

if TYPE_CHECKING:
    from penstock.models.growing import GrowingTable

# What they do depends on the batch: a traced model calls them as they are.
for _name in ("join", "join_steps", "pad_steps", "pool", "step_vectors", "take_columns"):
    torch.fx.wrap(_name)

_TABLES, _WEIGHTED_TABLES, _NUMBERS, _MADE = "tables", "weighted_tables", "numbers", "made"
LOOKUP_BYTES = 16
"""Length and offsets of a row's ids, for each table that is read."""
ID_COPIES = 2
"""Ids in the order of tables, and sorted for the backward pass."""


class EmbeddingGroup(nn.Module):
    """All tables of a model, and the groups that are joined from them.

    Tables whose ids are pooled without weights and with weights are in two collections, because a collection is one or
    the other; those that sequences read are in a third kind, one for each width, which gives a vector for each id, and
    what is pooled of them is pooled here. With `device="meta"` no table is allocated: sharding makes them where they
    belong.
    """

    def __init__(self, plan: TablePlan, device: torch.device | str | None = None) -> None:
        super().__init__()
        self.plan = plan
        pooled = [table for table in plan.tables.values() if not table.has_steps]
        self.tables = _bag_collection([table for table in pooled if not table.weighted], False, device)
        self.weighted_tables = _bag_collection([table for table in pooled if table.weighted], True, device)
        by_dim: dict[str, list[Table]] = {}
        for table in plan.tables.values():
            if table.has_steps:
                by_dim.setdefault(f"dim{table.stored_dim}", []).append(table)
        self.step_tables = nn.ModuleDict({name: _collection(of, device) for name, of in by_dim.items()})
        self.number_embeddings = nn.ModuleDict()
        for name, feature in plan.numbers.items():
            assert feature.dense_embedding is not None
            network = build_number_embedding(feature.dense_embedding, feature.width, feature.embedding_dim)
            self.number_embeddings[_module_name(name)] = network
        self.growing = nn.ModuleDict()
        if plan.growing:
            from penstock.models.growing import GrowingTable  # imports numba

            for name, rows in plan.growing.items():
                self.growing[_module_name(name)] = GrowingTable(rows.options)
        self.encoders = nn.ModuleDict()
        self.widths = {name: sum(slot.width for slot in slots) for name, slots in plan.groups.items()}
        for group, plans in plan.encoders.items():
            encoders = nn.ModuleDict()
            for each in plans:
                query_dim, sequence_dim = each.sequence.query_dim, each.sequence.sequence_dim
                encoder = build_encoder(each.section, query_dim, sequence_dim, each.path)
                encoder.planned_steps = each.sequence.planned_steps
                encoders[_module_name(each.name)] = encoder
                self.widths[group] += encoder.output_dim
            self.encoders[_module_name(group)] = encoders
        for name, sequence in plan.sequences.items():
            self.widths |= {f"{name}.query": sequence.query_dim, f"{name}.sequence": sequence.sequence_dim}
        self._plan_joins()

    def _plan_joins(self) -> None:
        """Where everything is found, and what is the same as something else."""
        plan, flat = self.plan, _flat_groups(self.plan)
        columns = dict.fromkeys(slot for slots in flat.values() for slot in slots)
        self._has_numbers = any(slot.table is None for slot in columns)
        self._steps = dict.fromkeys(slot for sequence in _sequences(plan) for slot in sequence.steps)
        # In which lookup the vectors of each slot are found, and under which key.
        self._sources = {slot: _source(slot, plan.tables) for slot in (*columns, *self._steps)}
        # Columns that are made of what was looked up stand in no lookup.
        self._made = {
            slot: f"{slot.feature}@{slot.table or ''}"
            for slot in columns
            if slot.is_embedded or self._sources[slot][0] in self.step_tables or self._is_narrow(slot)
        }
        self._wanted = tuple(
            (
                name,
                tuple(
                    (_MADE, self._made[slot]) if slot in self._made else self._sources[slot] for slot in slots
                ),
            )
            for name, slots in flat.items()
        )
        # Groups of the same features are joined once; one with encoders is joined after these, and has more.
        self._first_of: dict[str, str] = {}
        names: dict[tuple[Slot, ...], str] = {}
        for name, slots in flat.items():
            if name not in plan.encoders:
                self._first_of[name] = names.setdefault(slots, name)
        self._step_lists = dict.fromkeys(sequence.steps for sequence in _sequences(plan))
        self._padded_lists = dict.fromkeys(each.steps for each in _sequences(plan) if each.is_padded)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Each DEEP and WIDE group as one tensor (B, D): its features side by side in the order of the run file, then
        its encoders.

        A SEQUENCE group gives `{group}.query` (B, D), where it has one, `{group}.sequence` (B, T, D), zeros behind the
        steps, and `{group}.sequence_length` (B); of a JAGGED_SEQUENCE group the sequence is (S, D).
        """
        pooled, single = self._look_up(batch)
        made = {key: self._made_column(slot, pooled, single) for slot, key in self._made.items()}
        parts = take_columns(self._wanted, pooled, made)
        groups: dict[str, torch.Tensor] = {}
        for name, first in self._first_of.items():
            groups[name] = groups[first] if first in groups else join(parts[name])
        steps = {slot: self._step_vectors(slot, single, batch) for slot in self._steps}
        joined = {slots: self._joined_steps(slots, steps) for slots in self._step_lists}
        padded = {slots: pad_steps(*joined[slots]) for slots in self._padded_lists}
        for name, sequence in self.plan.sequences.items():
            vectors, lengths = joined[sequence.steps]
            groups[f"{name}.sequence"] = padded[sequence.steps] if sequence.is_padded else vectors
            groups[f"{name}.sequence_length"] = lengths
        for group, plans in self.plan.encoders.items():
            encoded = []
            encoders: Any = self.encoders[_module_name(group)]
            for each in plans:
                query, slots = groups.get(_query_name(group, each.name)), each.sequence.steps
                encoded.append(encoders[_module_name(each.name)](query, padded[slots], joined[slots][1]))
            groups[group] = join(parts[group], encoded)
        return groups

    def growing_table(self, name: str) -> "GrowingTable":
        """Which keys have which rows of the table that features call so."""
        table: GrowingTable = self.growing[_module_name(name)]  # type: ignore[assignment]
        return table

    def _look_up(self, batch: Batch) -> tuple[dict[str, Any], dict[str, Any]]:
        """Vectors of rows, numbers among them, as KeyedTensors; and of single ids, as JaggedTensors by feature."""
        pooled: dict[str, Any] = {}
        if self.plan.growing:
            batch = with_rows(batch, self.plan.growing, self.growing, self.training)
        if self.tables is not None:
            pooled[_TABLES] = self.tables(batch.sparse_features[BASE])
        if self.weighted_tables is not None:
            pooled[_WEIGHTED_TABLES] = self.weighted_tables(batch.weighted_sparse_features[BASE])
        if self._has_numbers:
            pooled[_NUMBERS] = batch.dense_features[BASE]
        return pooled, {
            name: tables(batch.sparse_features[BASE]) for name, tables in self.step_tables.items()
        }

    def _made_column(self, slot: Slot, pooled: Mapping[str, Any], single: Mapping[str, Any]) -> torch.Tensor:
        lookup, key = self._sources[slot]
        column: torch.Tensor
        if lookup in single:
            ids = single[lookup][key]
            column = pool(ids.values(), ids.lengths(), self._is_mean(slot))
        else:
            column = pooled[lookup][key]
        if slot.is_embedded:
            column = self.number_embeddings[_module_name(slot.feature)](column)
        return column[:, : slot.width] if self._is_narrow(slot) else column

    def _step_vectors(self, slot: Slot, single: Mapping[str, Any], batch: Batch) -> Any:
        """The vectors of all steps (S, D), and the steps of each row (B)."""
        if slot.table is not None:
            lookup, key = self._sources[slot]
            found = step_vectors(
                single[lookup][key], batch.sequence_mulval_lengths, slot.feature, self._is_mean(slot)
            )
            return (found[0][:, : slot.width], found[1]) if self._is_narrow(slot) else found
        numbers = batch.sequence_dense_features[slot.feature]
        vectors = numbers.values()
        if slot.is_embedded:
            vectors = self.number_embeddings[_module_name(slot.feature)](vectors)
        return vectors, numbers.lengths().long()

    def _joined_steps(self, slots: Sequence[Slot], steps: Mapping[Slot, Any]) -> tuple[Any, Any]:
        found = [steps[slot] for slot in slots]
        both = join_steps(
            [slot.feature for slot in slots], [each[0] for each in found], [each[1] for each in found]
        )
        return both[0], both[1]

    def _is_narrow(self, slot: Slot) -> bool:
        """Whether its table is stored wider than it is."""
        return slot.table is not None and self.plan.tables[slot.table].stored_dim != slot.width

    def _is_mean(self, slot: Slot) -> bool:
        return slot.table is not None and self.plan.tables[slot.table].pooling == "mean"

    def row_use(self, data_row_bytes: int) -> RowUse:
        """Ids as tables read them, groups and sequences; while these are joined, the vectors that were looked up too.

        How many ids a row has is not known before it is read: `data_row_bytes` stand for them, and for steps the
        longest sequence that is not cut.
        """
        tables = self.plan.tables.values()
        num_lookups = sum(len(table.features) for table in tables)
        looked_up = sum(len(table.features) * table.dim for table in tables if not table.has_steps)
        ids = (num_lookups * LOOKUP_BYTES + ID_COPIES * data_row_bytes) / FLOAT_BYTES
        # A group that has the same features as another is the same tensor.
        same = {name for name, first in self._first_of.items() if name != first}
        joined = sum(self.widths[name] for name in self.plan.groups if name not in same)
        # The vectors of steps one after the other, and padded.
        sequences = dict.fromkeys(_sequences(self.plan))
        steps = sum(2 * each.sequence_dim * each.planned_steps for each in sequences)
        return RowUse(joined + steps + ids, looked_up)


@torch.fx.wrap
def with_rows(
    batch: Batch, growing: Mapping[str, GrowingRows], tables: nn.ModuleDict, training: bool
) -> Batch:
    """The batch with rows in place of the keys of tables that grow; in training new keys get rows."""
    from penstock.models.growing import grown

    def rows_in(found: dict[str, KeyedJaggedTensor]) -> dict[str, KeyedJaggedTensor]:
        if BASE not in found:
            return found
        ids = found[BASE]
        ends = ids.offset_per_key()
        places = {key: (ends[index], ends[index + 1]) for index, key in enumerate(ids.keys())}
        parts = {
            _module_name(table): [places[feature] for feature in rows.features if feature in places]
            for table, rows in growing.items()
        }
        values = grown(ids.values(), {table: part for table, part in parts.items() if part}, tables, training)
        rows = KeyedJaggedTensor(
            ids.keys(),
            values,
            weights=ids.weights_or_none(),
            lengths=ids.lengths(),
            stride=ids.stride(),
            length_per_key=ids.length_per_key(),
            offset_per_key=ends,
        )
        return {**found, BASE: rows}

    return replace(
        batch,
        sparse_features=rows_in(batch.sparse_features),
        weighted_sparse_features=rows_in(batch.weighted_sparse_features),
    )


def narrow_tables(model: nn.Module) -> dict[str, int]:
    """The true widths of tables that are stored wider, by name; of a sharded model or of an ordinary one."""
    return {
        table.name: table.dim
        for module in model.modules()
        if isinstance(module, EmbeddingGroup)
        for table in module.plan.tables.values()
        if table.dim != table.stored_dim
    }


def _module_name(name: str) -> str:
    """A name that torch takes: without dots, and none of its own, such as type."""
    name = name.replace(".", "_")
    return f"{name}_" if hasattr(nn.ModuleDict, name) else name


def _query_name(group: str, encoder: str) -> str:
    return f"{group}.{encoder}.query"


def _sequences(plan: TablePlan) -> Iterator[SequenceGroup]:
    yield from plan.sequences.values()
    for plans in plan.encoders.values():
        yield from (each.sequence for each in plans)


def _flat_groups(plan: TablePlan) -> dict[str, tuple[Slot, ...]]:
    """Everything that is one vector for each row: DEEP and WIDE groups, and queries."""
    queries = {f"{name}.query": sequence.query for name, sequence in plan.sequences.items()}
    for group, plans in plan.encoders.items():
        queries |= {_query_name(group, each.name): each.sequence.query for each in plans}
    return {**plan.groups, **{name: slots for name, slots in queries.items() if slots}}


def _source(slot: Slot, tables: Mapping[str, Table]) -> tuple[str, str]:
    """In which lookup a slot is found, and under which key; their order changes with sharding."""
    if slot.table is None:
        return _NUMBERS, slot.feature
    table = tables[slot.table]
    collection = _collection_of(table)
    read = [
        each
        for each in tables.values()
        if _collection_of(each) == collection and slot.feature in each.features
    ]
    # torchrec calls a feature that reads several tables of one collection `feature@table`.
    return collection, slot.feature if len(read) == 1 else f"{slot.feature}@{slot.table}"


def _collection_of(table: Table) -> str:
    if table.has_steps:
        return f"dim{table.stored_dim}"
    return _WEIGHTED_TABLES if table.weighted else _TABLES


def _options(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "num_embeddings": table.num_rows,
        "embedding_dim": table.stored_dim,
        "feature_names": list(table.features),
        "data_type": DataType[table.data_type],
        "init_fn": table.initialize,
    }


def _bag_collection(
    tables: Sequence[Table], is_weighted: bool, device: torch.device | str | None
) -> EmbeddingBagCollection | None:
    """Tables whose ids are pooled; None when there are none. Frozen tables take no gradient."""
    if not tables:
        return None
    configs = [
        # The weights of a mean are parts of their sum already.
        EmbeddingBagConfig(
            **_options(table), pooling=PoolingType.SUM if is_weighted else PoolingType[table.pooling.upper()]
        )
        for table in tables
    ]
    on_device = torch.device(device) if device is not None else None
    collection = EmbeddingBagCollection(tables=configs, is_weighted=is_weighted, device=on_device)
    for table in tables:
        collection.embedding_bags[table.name].weight.requires_grad_(table.trainable)
    return collection


def _collection(tables: Iterable[Table], device: torch.device | str | None) -> EmbeddingCollection:
    """Tables of one width, which give a vector for each id."""
    on_device = torch.device(device) if device is not None else None
    collection = EmbeddingCollection(
        tables=[EmbeddingConfig(**_options(table)) for table in tables], device=on_device
    )
    for table in tables:
        collection.embeddings[table.name].weight.requires_grad_(table.trainable)
    return collection
