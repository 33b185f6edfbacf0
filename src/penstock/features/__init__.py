"""Arrow columns -> values -> ids and numbers.

A feature reads inputs (columns, or other features) as Values, makes Values of them, and encodes those: as given, by
buckets, hash, vocabulary or boundaries. The modes say where one enters this graph: FG_NONE, columns are encoded;
FG_BUCKETIZE, they are made but not encoded; FG_NORMAL and FG_DAG, they are raw. The Parser runs the graph over a batch,
adds labels and sample weights, checks ranges, and names file and row of a bad value. Columns of numbers are views of
Arrow's memory; strings go through kernels.py in one pass.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.config.errors import ConfigError, Problem, format_path
from penstock.config.registry import Registry
from penstock.features.sections import FEATURES, FeatureConfig, ParsingSection, named_features

if TYPE_CHECKING:
    from penstock.features.feature import Feature, Recipe

_RECIPES: Registry[Callable[[Any], "Recipe"]] = Registry(
    "feature type", {name: row.path for name, row in FEATURES.items() if row.path}
)
_logger = logging.getLogger(__name__)


def build_features(
    feature_configs: Sequence[FeatureConfig],
    parsing: ParsingSection,
    used_names: Collection[str] | None = None,
) -> "list[Feature]":
    """The features in the order of the run file; with `used_names` only these and what they are made of.

    Raises ConfigError with every problem of every feature. What features must agree on with each other and with
    the groups was checked when the run file was read.
    """
    from penstock.features.feature import build_feature

    features: dict[str, Feature] = {}
    problems: list[Problem] = []
    named = {each.name: each for each in named_features(feature_configs)}
    wanted = [name for name in named if used_names is None or name in used_names]
    for name in wanted:  # grows by what features are made of
        each = named[name]
        kind = str(each.key[-1])
        plain = kind.removeprefix("sequence_")
        path = format_path(each.key)
        if plain not in FEATURES or not FEATURES[plain].path:
            problems.append(Problem(path, f"not available yet; available: {', '.join(_RECIPES)}"))
            continue
        try:
            features[name] = build_feature(each, parsing, _RECIPES.get(plain))
        except ConfigError as error:
            problems += [
                replace(problem, path=f"{path}.{problem.path}" if problem.path else path)
                for problem in error.problems
            ]
            continue
        for source in features[name].sources:
            if source.side == "feature" and source.name in named and source.name not in wanted:
                wanted.append(source.name)
    if problems:
        raise ConfigError(problems)
    unused = [name for name in named if name not in features]
    if unused:
        _logger.info(
            "%d of %d features are in no feature group and are not read: %s",
            *(len(unused), len(named), ", ".join(unused)),
        )
    # A table is read with weights or without, by all of its features.
    tables = [feature.table for feature in features.values() if feature.table is not None]
    weighted = {table.name for table in tables if table.weighted}
    for name, feature in features.items():
        if feature.table is not None and feature.table.name in weighted:
            features[name] = replace(feature, table=replace(feature.table, weighted=True))
    return [features[name] for name in named if name in features]
