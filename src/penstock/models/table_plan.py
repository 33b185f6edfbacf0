"""From feature groups to embedding tables: who shares what, who is looked up where.

Worked out on names and numbers alone, before anything is allocated, so that every problem of the run file is
told at once. A DEEP group uses each feature's own table; features with the same embedding_name share one, and
a feature in several DEEP groups is looked up once. A WIDE group has tables of its own, named `{table}_wide`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.config.errors import ConfigError, Problem
from penstock.config.nearest import hint
from penstock.models.initializers import DEFAULT_INIT, DEFAULT_WIDE_INIT, Initializer, parse_initializer

if TYPE_CHECKING:
    from penstock.features import Feature, TableSpec
    from penstock.models.sections import FeatureGroupConfig

DIM_STEP = 4
"""The kernel of sharded tables reads rows in steps of so many numbers."""


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
    data_type: str
    initializer: Initializer
    weighted: bool
    is_wide: bool
    features: tuple[str, ...]

    @property
    def shape(self) -> str:
        """What features must agree on to share a table."""
        return (
            f"{self.num_rows} rows of {self.dim}, {self.pooling} pooling, trainable {self.trainable}".lower()
        )


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
    """Tables and groups; a ConfigError holds every problem that was found."""
    planner = _Planner({feature.name: feature for feature in features}, wide or WideTables())
    for index, group in enumerate(groups):
        planner.add_group(group, f"model_config.feature_groups[{index}]")
    planner.check_tables()
    if planner.problems:
        raise ConfigError(planner.problems)
    ids_are_weighted = any(feature.table is not None and feature.table.weighted for feature in features)
    return TablePlan(planner.tables, planner.groups, ids_are_weighted)


class _Planner:
    def __init__(self, features: Mapping[str, "Feature"], wide: WideTables) -> None:
        self.features = features
        self.wide = wide
        self.tables: dict[str, Table] = {}
        self.groups: dict[str, tuple[Slot, ...]] = {}
        self.problems: list[Problem] = []

    def add_group(self, group: "FeatureGroupConfig", path: str) -> None:
        problems = list(self._group_problems(group, path))
        self.problems.extend(problems)
        if not problems:
            is_wide = str(group.group_type) == "WIDE"
            self.groups[group.group_name] = tuple(self._slots(group.feature_names, is_wide))

    def check_tables(self) -> None:
        for table in self.tables.values():
            if table.weighted and table.pooling == "mean":
                self._report(table, "a weighted feature cannot be pooled by mean; use sum")
            if table.data_type != "FP32":
                self._report(table, f"data_type {table.data_type} is not available yet; available: FP32")
            if table.dim % DIM_STEP and not table.is_wide:
                self._report(table, f"embedding_dim {_not_a_step(table.dim)}")
        if self.wide.dim % DIM_STEP:
            self.problems.append(Problem(f"{self.wide.path}.wide_embedding_dim", _not_a_step(self.wide.dim)))

    def _group_problems(self, group: "FeatureGroupConfig", path: str) -> Iterator[Problem]:
        if str(group.group_type) not in ("DEEP", "WIDE"):
            yield Problem(
                f"{path}.group_type", f"{group.group_type} is not available yet; available: DEEP, WIDE"
            )
        if group.group_name in self.groups:
            yield Problem(f"{path}.group_name", f"'{group.group_name}' is there twice")
        if not group.feature_names:
            yield Problem(f"{path}.feature_names", "is empty")
        for position, name in enumerate(group.feature_names):
            place = f"{path}.feature_names[{position}]"
            if name not in self.features:
                yield Problem(place, f"there is no feature '{name}'; {hint(name, self.features)}")
            if name in group.feature_names[:position]:
                yield Problem(place, f"'{name}' is there twice")

    def _slots(self, names: Sequence[str], is_wide: bool) -> Iterator[Slot]:
        for name in names:
            feature = self.features[name]
            if feature.table is None:
                yield Slot(name, None, feature.width)
                continue
            table = self._table(name, feature.table, is_wide)
            self._share(table)
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
            data_type=str(spec.data_type),
            initializer=parse_initializer(init_fn, path),
            weighted=spec.weighted,
            is_wide=is_wide,
            features=(feature,),
        )

    def _share(self, table: Table) -> None:
        """Enters a feature into its table, which is read with weights if one of its features is weighted."""
        known = self.tables.setdefault(table.name, table)
        if known.shape != table.shape:
            self._report(table, f"asks for {table.shape}; '{known.features[0]}' has made it {known.shape}")
        elif table.features[0] not in known.features:
            self.tables[table.name] = replace(
                known, features=known.features + table.features, weighted=known.weighted or table.weighted
            )

    def _report(self, table: Table, message: str) -> None:
        self.problems.append(
            Problem(f"feature_configs: feature '{table.features[0]}': table '{table.name}'", message)
        )


def _not_a_step(dim: int) -> str:
    return f"is {dim}, not a multiple of {DIM_STEP}; use {dim + -dim % DIM_STEP}"
