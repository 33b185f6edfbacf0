"""From feature groups to embedding tables: who shares what, who is looked up where.

Worked out on names and numbers alone, before anything is allocated. A DEEP group uses each feature's own
table; features with the same embedding_name share one, and a feature in several DEEP groups is looked up
once. A WIDE group has tables of its own, named `{table}_wide`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.models.initializers import DEFAULT_INIT, DEFAULT_WIDE_INIT, Initializer, parse_initializer

if TYPE_CHECKING:
    from penstock.features import Feature, TableSpec
    from penstock.models.sections.groups import FeatureGroupConfig


@dataclass(frozen=True, slots=True)
class WideTables:
    """What the tables of WIDE groups look like."""

    dim: int = 4
    init_fn: str | None = None
    path: str = "model_config"
    """The section that says so, for messages."""


@dataclass(frozen=True, slots=True)
class Table:
    """One embedding table and the features that read it."""

    name: str
    num_rows: int
    dim: int
    pooling: str
    trainable: bool
    initializer: Initializer
    weighted: bool
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """One feature's place in a group."""

    feature: str
    table: str | None
    """None: the feature is dense and enters as it is."""

    width: int


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The tables of a model, and what each group is joined from."""

    tables: Mapping[str, Table]
    groups: Mapping[str, tuple[Slot, ...]]
    ids_are_weighted: bool = False
    """Whether batches carry weights, because a feature of the run is weighted; the others then weigh 1."""


def plan_tables(
    groups: Sequence["FeatureGroupConfig"], features: Sequence["Feature"], wide: WideTables | None = None
) -> TablePlan:
    """Tables and groups. That these agree with each other was checked when the run file was read."""
    planner = _Planner({feature.name: feature for feature in features}, wide or WideTables())
    slots = {group.group_name: tuple(planner.slots(group)) for group in groups}
    ids_are_weighted = any(feature.table is not None and feature.table.weighted for feature in features)
    return TablePlan(planner.tables, slots, ids_are_weighted)


class _Planner:
    def __init__(self, features: Mapping[str, "Feature"], wide: WideTables) -> None:
        self.features = features
        self.wide = wide
        self.tables: dict[str, Table] = {}

    def slots(self, group: "FeatureGroupConfig") -> Iterator[Slot]:
        """The features of a group; their tables are entered on the way."""
        for name in group.feature_names:
            feature = self.features[name]
            if feature.table is None:
                yield Slot(name, None, feature.width)
                continue
            table = self._table(name, feature.table, is_wide=str(group.group_type) == "WIDE")
            self._enter(table)
            yield Slot(name, table.name, table.dim)

    def _table(self, feature: str, spec: "TableSpec", is_wide: bool) -> Table:
        """The table that one feature asks for; a wide one has the rows of the deep one, but its own width."""
        init_fn = (self.wide.init_fn or DEFAULT_WIDE_INIT) if is_wide else (spec.init_fn or DEFAULT_INIT)
        path = (
            f"{self.wide.path}.wide_init_fn" if is_wide else f"feature_configs: feature '{feature}': init_fn"
        )
        return Table(
            name=f"{spec.name}_wide" if is_wide else spec.name,
            num_rows=spec.num_rows,
            dim=self.wide.dim if is_wide else spec.dim,
            pooling=str(spec.pooling),
            trainable=spec.trainable,
            initializer=parse_initializer(init_fn, path),
            weighted=spec.weighted,
            features=(feature,),
        )

    def _enter(self, table: Table) -> None:
        """Adds a feature to its table, which is read with weights if one of its features is weighted."""
        known = self.tables.setdefault(table.name, table)
        if table.features[0] not in known.features:
            self.tables[table.name] = replace(
                known, features=known.features + table.features, weighted=known.weighted or table.weighted
            )
