"""From feature groups to embedding tables: who shares what, who is looked up where.

Worked out on names and numbers alone, before anything is allocated. A DEEP group uses each feature's own
table; features with the same embedding_name share one, and a feature in several DEEP groups is looked up
once. A WIDE group has tables of its own, named `{table}_wide`.

Initial values are written in the run file as a call: `nn.init.uniform_,a=-0.01,b=0.01`. The text is read, never
evaluated: the function must be one of INITIALIZERS and its arguments numbers.
"""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint

if TYPE_CHECKING:
    from penstock.features.feature import Feature, TableSpec
    from penstock.models.sections.groups import FeatureGroupConfig

Initializer = Callable[[torch.Tensor], torch.Tensor]

INITIALIZERS = (
    "constant_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
)
"""The functions of torch.nn.init that a run file may name."""

DEFAULT_INIT = "nn.init.normal_,std=0.01"
"""Small beside what is learned, so that a row seen rarely or never adds little noise."""

DEFAULT_WIDE_INIT = "nn.init.zeros_"
"""A wide part is linear: it needs no noise to start from, and a row never seen adds nothing."""


def parse_initializer(text: str, path: str) -> Initializer:
    """The initialiser that a text names; `path` is the place in the run file, for the message."""
    name, *arguments = (part.strip() for part in text.split(","))
    short_name = name.removeprefix("torch.").removeprefix("nn.init.")
    if short_name not in INITIALIZERS:
        raise ConfigError.at(path, f"'{name}' is not an initialiser; {hint(short_name, INITIALIZERS)}")
    function = getattr(torch.nn.init, short_name)
    known = [
        argument
        for argument in inspect.signature(function).parameters
        if argument not in ("tensor", "generator")
    ]
    return partial(function, **dict(_argument(argument, short_name, known, path) for argument in arguments))


def _argument(text: str, function: str, known: list[str], path: str) -> tuple[str, float | str]:
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator or name not in known:
        raise ConfigError.at(path, f"{function} has no argument '{name}'; write {_usage(function, known)}")
    try:
        number = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ConfigError.at(path, f"{name} of {function} is '{value}', not a number")
    return name, number


def _usage(function: str, known: list[str]) -> str:
    return ",".join([f"nn.init.{function}", *(f"{argument}=..." for argument in known)])


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
