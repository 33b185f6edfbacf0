"""From feature groups to embedding tables: who shares what, who is looked up where.

Worked out on names and numbers alone, before anything is allocated. A DEEP group uses each feature's own
table; features with the same embedding_name share one, and a feature in several groups is looked up
once. A WIDE group has tables of its own, named `{table}_wide`, and so has a group with an embedding_name_suffix. A
sequence group looks up every step; a table that any of them reads is in a collection that does not pool.

Initial values are written in the run file as a call: `nn.init.uniform_,a=-0.01,b=0.01`. The text is read, never
evaluated: the function must be one of INITIALIZERS and its arguments numbers.
"""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from penstock.config.errors import ConfigError, hint
from penstock.config.section import Section
from penstock.features.feature import Feature
from penstock.features.sections.types import WIDTH_STEP
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


ASSUMED_STEPS = 100
"""Of sequences without a sequence_length, where memory is planned."""


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
    data_type: str = "FP32"
    has_steps: bool = False
    """Whether a sequence group reads it, step by step; what is pooled of it is then pooled outside."""

    @property
    def stored_dim(self) -> int:
        """The kernel reads rows in steps of several numbers; those behind the true width are zeros, and stay zeros."""
        return self.dim + -self.dim % WIDTH_STEP

    def initialize(self, weights: torch.Tensor) -> torch.Tensor:
        """Fill the table; values are drawn at its true width."""
        if self.dim == self.stored_dim:
            return self.initializer(weights)
        values = weights.detach()
        values[:, self.dim :].zero_()
        self.initializer(values[:, : self.dim])
        return weights


@dataclass(frozen=True, slots=True)
class Slot:
    """One feature's columns in a group, or in every step of a sequence."""

    feature: str
    table: str | None
    """None: the feature is dense."""

    width: int
    is_step: bool = False
    """A vector for each step, rather than for each row."""

    is_embedded: bool = False
    """Of a dense feature: a small network makes vectors of its numbers."""

    @property
    def is_vector(self) -> bool:
        """Whether it has been learned, rather than taken from the data as it is."""
        return self.table is not None or self.is_embedded


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """A query of whole rows, and the steps of a sequence."""

    query: tuple[Slot, ...]
    steps: tuple[Slot, ...]
    is_padded: bool
    max_steps: int
    """Longer sequences are cut; 0: they are not."""

    @property
    def planned_steps(self) -> int:
        """Of a row, for the memory plan."""
        return self.max_steps or ASSUMED_STEPS

    @property
    def query_dim(self) -> int:
        return sum(slot.width for slot in self.query)

    @property
    def sequence_dim(self) -> int:
        return sum(slot.width for slot in self.steps)


@dataclass(frozen=True, slots=True)
class EncoderPlan:
    """One encoder of a DEEP group: its name there, its options and their path, and the sequence group it reads."""

    name: str
    section: Section
    path: str
    sequence: SequenceGroup


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The tables of a model, and what each group is joined from."""

    tables: Mapping[str, Table]
    groups: Mapping[str, tuple[Slot, ...]]
    """Groups that are one vector for each row: DEEP and WIDE."""

    sequences: Mapping[str, SequenceGroup] = field(default_factory=dict)
    encoders: Mapping[str, tuple[EncoderPlan, ...]] = field(default_factory=dict)
    """By DEEP group: whose outputs stand behind its features."""

    numbers: Mapping[str, Feature] = field(default_factory=dict)
    """The dense features of which networks make vectors."""

    growing: Mapping[str, "GrowingRows"] = field(default_factory=dict)
    """By the name of the features' table: rows that are given to keys as they appear."""


@dataclass(frozen=True, slots=True)
class GrowingRows:
    """Who reads rows that are given to keys: wide and deep tables of a feature have the same ones."""

    options: Any
    features: tuple[str, ...]
    tables: tuple[str, ...]


def plan_tables(
    groups: Sequence[FeatureGroupConfig], features: Sequence[Feature], wide: WideTables | None = None
) -> TablePlan:
    """Tables and groups. That these agree with each other was checked when the run file was read."""
    by_name = {feature.name: feature for feature in features}
    tables: dict[str, Table] = {}
    flat: dict[str, tuple[Slot, ...]] = {}
    sequences: dict[str, SequenceGroup] = {}
    encoders: dict[str, tuple[EncoderPlan, ...]] = {}

    def sequence_group(names: Sequence[str], suffix: str | None, is_padded: bool = True) -> SequenceGroup:
        chosen = [by_name[name] for name in names]
        specs = [each.sequence for each in chosen if each.sequence is not None]
        return SequenceGroup(
            tuple(_slot(each, tables, suffix=suffix) for each in chosen if each.sequence is None),
            tuple(
                _slot(each, tables, suffix=suffix, is_step=True)
                for each in chosen
                if each.sequence is not None
            ),
            is_padded,
            min((spec.max_steps for spec in specs if spec.max_steps), default=0),
        )

    for index, group in enumerate(groups):
        name, kind, suffix = group.group_name, str(group.group_type), group.embedding_name_suffix
        if kind in ("SEQUENCE", "JAGGED_SEQUENCE"):
            sequences[name] = sequence_group(group.feature_names, suffix, kind == "SEQUENCE")
            continue
        of_wide = (wide or WideTables()) if kind == "WIDE" else None
        flat[name] = tuple(
            _slot(by_name[each], tables, wide=of_wide, suffix=suffix) for each in group.feature_names
        )
        nested = {
            each.group_name: sequence_group(each.feature_names, each.embedding_name_suffix or suffix)
            for each in group.sequence_groups
        }
        plans = []
        for position, encoder in enumerate(group.sequence_encoders):
            section = encoder.section
            read = section.input if section.input is not None else next(iter(nested))
            path = f"model_config.feature_groups[{index}].sequence_encoders[{position}].{encoder.kind}"
            plans.append(EncoderPlan(group.encoder_name(encoder), section, path, nested[read]))
        if plans:
            encoders[name] = tuple(plans)
    numbers = {
        slot.feature: by_name[slot.feature]
        for slots in (*flat.values(), *_slots_of(sequences.values(), encoders.values()))
        for slot in slots
        if slot.is_embedded
    }
    growing: dict[str, GrowingRows] = {}
    for table in tables.values():
        for name in table.features:
            spec = by_name[name].table
            if spec is not None and spec.growing is not None:
                rows = growing.get(spec.name, GrowingRows(spec.growing, (), ()))
                growing[spec.name] = GrowingRows(
                    spec.growing,
                    tuple(dict.fromkeys([*rows.features, name])),
                    tuple(dict.fromkeys([*rows.tables, table.name])),
                )
    return TablePlan(tables, flat, sequences, encoders, numbers, growing)


def _slots_of(
    sequences: Iterable[SequenceGroup], encoders: Iterable[Sequence[EncoderPlan]]
) -> Iterator[tuple[Slot, ...]]:
    for sequence in (*sequences, *(plan.sequence for plans in encoders for plan in plans)):
        yield sequence.query
        yield sequence.steps


def _slot(
    feature: Feature,
    tables: dict[str, Table],
    *,
    wide: WideTables | None = None,
    suffix: str | None = None,
    is_step: bool = False,
) -> Slot:
    """The columns of a feature; its table is added to `tables`, or the feature to the table's readers."""
    name, spec = feature.name, feature.table
    if spec is None:
        is_embedded = feature.dense_embedding is not None and wide is None
        width = feature.width * (feature.embedding_dim if is_embedded else 1)
        return Slot(name, None, width, is_step, is_embedded)
    path = f"feature_configs: feature '{name}'"
    table_name, dim, init_fn = spec.name, spec.dim, spec.init_fn or DEFAULT_INIT
    init_path = f"{path}: init_fn"
    if wide is not None:
        # The rows of the deep table, but a width of its own.
        table_name, dim = f"{spec.name}_wide", wide.dim
        init_fn, init_path = wide.init_fn or DEFAULT_WIDE_INIT, f"{wide.path}.wide_init_fn"
    if suffix is not None:
        table_name = f"{table_name}_{suffix}"
    if "." in table_name or hasattr(torch.nn.ModuleDict, table_name):
        other = f"{table_name.replace('.', '_')}_emb"
        message = f"'{table_name}' cannot be the name of a torch module; choose another, such as {other}"
        raise ConfigError.at(f"{path}: embedding_name", message)
    table = Table(
        table_name,
        spec.num_rows,
        dim,
        str(spec.pooling),
        spec.trainable,
        parse_initializer(init_fn, init_path),
        spec.weighted,
        features=(name,),
        data_type=spec.data_type,
    )
    known = tables.setdefault(table_name, table)
    if known.weighted != spec.weighted:
        message = (
            f"is {str(spec.weighted).lower()}, but '{known.features[0]}' shares the table '{table_name}'"
        )
        raise ConfigError.at(f"{path}: weighted", f"{message} and is not so; give one of them its own")
    readers = known.features if name in known.features else (*known.features, name)
    tables[table_name] = replace(known, features=readers, has_steps=known.has_steps or is_step)
    if spec.weighted and tables[table_name].has_steps:
        raise ConfigError.at(f"{path}: weighted", "is for ids that are pooled; a sequence group takes none")
    return Slot(name, table_name, dim, is_step)
