"""All features of a run as one graph: columns are read once, and features may feed features."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError, hint
from penstock.features.arrow_values import read_values
from penstock.features.encoding import NumberEncoding
from penstock.features.feature import Feature, Input
from penstock.features.strings import from_list, split
from penstock.features.value_counts import ValueCounts
from penstock.features.values import BoolArray, Column, DenseColumn, Values, one_per_row

Table = pa.RecordBatch | pa.Table


class FeatureGraph:
    """Features in the order in which each can be made; those of one level need nothing of each other."""

    def __init__(self, features: Sequence[Feature], num_threads: int = 1) -> None:
        self.features = {feature.name: feature for feature in features}
        self.levels = _levels(self.features)
        self.num_threads = num_threads
        self._threads: ThreadPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_threads": None}

    def columns(
        self,
        batch: Table,
        wanted: Collection[str] | None = None,
        counts: dict[str, ValueCounts] | None = None,
        hidden: Mapping[str, BoolArray] | None = None,
    ) -> dict[str, Column]:
        """The column of every feature, or of those that are wanted; `counts`, `hidden`: see Feature.column."""
        made = self._made(batch, wanted, counts, hidden)
        return {name: column for name, column in made.items() if not isinstance(column, Values)}

    def _made(
        self,
        batch: Table,
        wanted: Collection[str] | None = None,
        counts: dict[str, ValueCounts] | None = None,
        hidden: Mapping[str, BoolArray] | None = None,
    ) -> "dict[str, Column | Values]":
        read: dict[tuple[Any, ...], Values] = {}
        made: dict[str, Column | Values] = {}

        def make(name: str) -> Column | Values:
            feature = self.features[name]
            inputs = [_value_of(source, feature, batch, read, made) for source in feature.sources]
            return feature.column(inputs, counts, None if hidden is None else hidden.get(name))

        for level in self.levels:
            names = [name for name in level if wanted is None or name in wanted]
            if self.num_threads > 1 and len(names) > 1:
                if self._threads is None:
                    self._threads = ThreadPoolExecutor(self.num_threads, "penstock-features")
                found = list(self._threads.map(make, names))
            else:
                found = [make(name) for name in names]
            made.update(zip(names, found, strict=True))
        return made

    def values(self, batch: Table, wanted: Collection[str]) -> Iterator[tuple[str, Values]]:
        """What these features make of a batch before it is encoded, each value apart; missing rows have none."""
        features = [self.features[name] for name in wanted]
        read: dict[tuple[Any, ...], Values] = {}
        is_fed = any(source.side == "feature" for each in features for source in each.sources)
        made = self._made(batch) if is_fed else {}
        for feature in features:
            inputs = [_value_of(source, feature, batch, read, made, False) for source in feature.sources]
            yield feature.name, feature.separate_values(inputs)


def _value_of(
    source: Input,
    feature: Feature,
    batch: Table,
    read: dict[tuple[Any, ...], Values],
    made: Mapping[str, Column | Values],
    fills_nulls: bool = True,
) -> Values:
    """One input of a feature; `read` keeps the columns that were read, `made` has the features that were made.

    `fills_nulls`: numbers that are null may be read as the default at once.
    """
    if source.side == "feature":
        return values_of(made[source.name])
    if source.side == "const":
        strings = from_list([source.name])
        everywhere = np.zeros(batch.num_rows, np.int64)
        return Values(strings.take(everywhere), one_per_row(batch.num_rows))
    null, encoding = None, feature.encoding
    is_plain = fills_nulls and feature.transform is None and feature.sequence is None
    if is_plain and isinstance(encoding, NumberEncoding):
        null = encoding.null
    key = source.name, source.separator, source.step_separator, null, source.is_map
    if key not in read:
        read[key] = read_values(batch.column(source.name), *key)
    if feature.transform is None:  # split and encoded in one pass
        return read[key]
    max_steps = 0 if feature.sequence is None else feature.sequence.max_steps
    split_key = *key, max_steps
    if split_key not in read:
        read[split_key] = split(read[key], max_steps)
    return read[split_key]


def values_of(column: Column | Values) -> Values:
    """What a feature gives to another: its numbers, its ids, or its strings."""
    if isinstance(column, Values):
        return column
    if isinstance(column, DenseColumn):
        num_rows, width = column.values.shape
        lengths = one_per_row(num_rows) if width == 1 else np.full(num_rows, width, np.int32)
        return Values(column.values.reshape(-1), lengths, column.steps)
    return Values(column.values, column.lengths, column.steps, column.weights)


def _levels(features: Mapping[str, Feature]) -> list[list[str]]:
    needs: dict[str, list[str]] = {}
    for feature in features.values():
        needs[feature.name] = [source.name for source in feature.sources if source.side == "feature"]
        for name in needs[feature.name]:
            if name not in features:
                made_of = f"feature '{feature.name}' is made of feature:{name}, which is not there"
                raise ConfigError.at("feature_configs", f"{made_of}; {hint(name, features)}")
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise ConfigError.at("feature_configs", f"features are made of each other: {circle}") from error
    levels = []
    while sorter.is_active():
        ready = sorter.get_ready()
        levels.append([name for name in features if name in ready])
        sorter.done(*ready)
    return levels
