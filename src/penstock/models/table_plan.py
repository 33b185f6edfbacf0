"""From feature groups to embedding tables: who shares what, who is looked up where.

Worked out on names and numbers alone, before anything is allocated. A DEEP group uses each feature's own
table; features with the same embedding_name share one, and a feature in several DEEP groups is looked up
once. A WIDE group has tables of its own, named `{table}_wide`.

Initial values are written in the run file as a call: `nn.init.uniform_,a=-0.01,b=0.01`. The text is read, never
evaluated: the function must be one of INITIALIZERS and its arguments numbers.
"""

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import torch

from penstock.config.errors import ConfigError, hint
from penstock.features.feature import Feature
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
    """The initialiser that a string names; `path` is its key in the run file, for the message."""
    name, *arguments = (part.strip() for part in text.split(","))
    short_name = name.removeprefix("torch.").removeprefix("nn.init.")
    if short_name not in INITIALIZERS:
        raise ConfigError.at(path, f"'{name}' is not an initialiser; {hint(short_name, INITIALIZERS)}")
    function = getattr(torch.nn.init, short_name)
    known = [key for key in inspect.signature(function).parameters if key not in ("tensor", "generator")]
    numbers: dict[str, float] = {}
    for argument in arguments:
        key, separator, value = (part.strip() for part in argument.partition("="))
        if not separator or key not in known:
            usage = ",".join([f"nn.init.{short_name}", *(f"{each}=..." for each in known)])
            raise ConfigError.at(path, f"{short_name} has no argument '{key}'; write {usage}")
        number = None
        with suppress(ValueError, SyntaxError):
            number = ast.literal_eval(value)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ConfigError.at(path, f"{key} of {short_name} is '{value}', not a number")
        numbers[key] = number
    return partial(function, **numbers)


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
    """One feature's columns in a group."""

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
    groups: Sequence[FeatureGroupConfig], features: Sequence[Feature], wide: WideTables | None = None
) -> TablePlan:
    """Tables and groups. That these agree with each other was checked when the run file was read."""
    by_name = {feature.name: feature for feature in features}
    tables: dict[str, Table] = {}
    slots: dict[str, tuple[Slot, ...]] = {}
    for group in groups:
        slots[group.group_name] = ()
        of_wide = (wide or WideTables()) if str(group.group_type) == "WIDE" else None
        for name in group.feature_names:
            spec = by_name[name].table
            if spec is None:
                slots[group.group_name] += (Slot(name, None, by_name[name].width),)
                continue
            if of_wide is None:
                table_name, dim, init_fn = spec.name, spec.dim, spec.init_fn or DEFAULT_INIT
                path = f"feature_configs: feature '{name}': init_fn"
            else:
                # The rows of the deep table, but a width of its own.
                table_name, dim = f"{spec.name}_wide", of_wide.dim
                init_fn, path = of_wide.init_fn or DEFAULT_WIDE_INIT, f"{of_wide.path}.wide_init_fn"
            table = Table(
                table_name,
                spec.num_rows,
                dim,
                str(spec.pooling),
                spec.trainable,
                parse_initializer(init_fn, path),
                spec.weighted,
                features=(name,),
            )
            slots[group.group_name] += (Slot(name, table_name, dim),)
            known = tables.setdefault(table_name, table)
            if name not in known.features:
                # Read with weights if one of its features is weighted.
                tables[table_name] = replace(
                    known, features=(*known.features, name), weighted=known.weighted or spec.weighted
                )
    ids_are_weighted = any(feature.table is not None and feature.table.weighted for feature in features)
    return TablePlan(tables, slots, ids_are_weighted)
