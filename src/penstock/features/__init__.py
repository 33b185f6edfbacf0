"""Arrow columns -> ids and numbers.

A feature reads columns of a record batch and gives a SparseColumn (values, lengths, weights) or a
DenseColumn. What a column holds and how it is split depends on the input mode: FG_NONE, already encoded;
FG_NORMAL, raw values. The Parser runs all features over a batch, adds labels and sample weights, checks
ranges, and names file and row of a bad value. Columns of numbers are views of Arrow's memory; strings go
through the kernels of kernels.py in one pass.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.config.errors import ConfigError, Problem
from penstock.config.registry import Registry
from penstock.features.sections import FEATURES, FeatureConfig, FgMode, ParsingSection, named_features

if TYPE_CHECKING:
    from penstock.features.feature import Feature

_BUILDERS: Registry[Callable[[Any, ParsingSection], "Feature"]] = Registry(
    "feature type", {name: row.path for name, row in FEATURES.items() if row.path}
)
_logger = logging.getLogger(__name__)


def build_features(
    feature_configs: Sequence[FeatureConfig],
    parsing: ParsingSection,
    used_names: Collection[str] | None = None,
) -> "list[Feature]":
    """The features in the order of the run file; with `used_names` only these, so that no others are read.

    Raises ConfigError with every problem of every feature. What features must agree on with each other and with
    the groups was checked when the run file was read.
    """
    mode = parsing.resolved_fg_mode()
    if mode not in (FgMode.FG_NONE, FgMode.FG_NORMAL):
        raise ConfigError.at("data_config.fg_mode", f"{mode} is not available yet; FG_NONE and FG_NORMAL are")
    features: list[Feature] = []
    unused: list[str] = []
    problems: list[Problem] = []
    named = list(named_features(feature_configs))
    for each in named:
        if used_names is not None and each.name not in used_names:
            unused.append(each.name)
            continue
        index, kind = each.key[1], str(each.key[2])
        path = f"feature_configs[{index}].{kind}"
        if kind not in FEATURES or not FEATURES[kind].path:
            problems.append(Problem(path, f"not available yet; available: {', '.join(_BUILDERS)}"))
            continue
        try:
            features.append(_BUILDERS.get(kind)(each.section, parsing))
        except ConfigError as error:
            problems += [
                replace(problem, path=f"{path}.{problem.path}" if problem.path else path)
                for problem in error.problems
            ]
    if problems:
        raise ConfigError(problems)
    if unused:
        _logger.info(
            "%d of %d features are in no feature group and are not read: %s",
            len(unused),
            len(named),
            ", ".join(unused),
        )
    return features
