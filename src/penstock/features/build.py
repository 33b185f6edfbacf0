"""feature_configs -> features: one builder per type, all problems at once."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from penstock.config.errors import ConfigError, Problem
from penstock.config.registry import Registry
from penstock.features.feature import Feature
from penstock.features.sections import FEATURES, FeatureConfig, FgMode, ParsingSection, named_features

Builder = Callable[[Any, ParsingSection], Feature]

FEATURE_TYPES: Registry[Builder] = Registry(
    "feature type", {name: row.path for name, row in FEATURES.items() if row.path}
)

_AVAILABLE_MODES = (FgMode.FG_NONE, FgMode.FG_NORMAL)
_logger = logging.getLogger(__name__)


def build_features(
    feature_configs: Sequence[FeatureConfig],
    parsing: ParsingSection,
    used_names: Collection[str] | None = None,
) -> list[Feature]:
    """The features in the order of the run file; with `used_names` only these, so that no others are read.

    Raises ConfigError with every problem of every feature. What features must agree on with each other and with
    the groups was checked when the run file was read.
    """
    mode = parsing.resolved_fg_mode()
    if mode not in _AVAILABLE_MODES:
        raise ConfigError.at("data_config.fg_mode", f"{mode} is not available yet; FG_NONE and FG_NORMAL are")
    names = [feature_names(config) for config in feature_configs]
    every_name = list(chain.from_iterable(names))
    unused = [name for name in every_name if used_names is not None and name not in used_names]
    if unused:
        _logger.info(
            "%d of %d features are in no feature group and are not read: %s",
            len(unused),
            len(every_name),
            ", ".join(unused),
        )
    features: list[Feature] = []
    problems: list[Problem] = []
    for index, config in enumerate(feature_configs):
        if used_names is not None and not any(name in used_names for name in names[index]):
            continue
        chosen = config.chosen("feature")
        assert chosen is not None  # a section without a type is refused when it is made
        kind, section = chosen
        path = f"feature_configs[{index}].{kind}"
        if kind not in FEATURE_TYPES:
            available = ", ".join(FEATURE_TYPES)
            problems.append(Problem(path, f"not available yet; available: {available}"))
            continue
        try:
            features.append(FEATURE_TYPES.get(kind)(section, parsing))
        except ConfigError as error:
            problems += [
                replace(problem, path=f"{path}.{problem.path}" if problem.path else path)
                for problem in error.problems
            ]
    if problems:
        raise ConfigError(problems)
    return features


def feature_names(config: FeatureConfig) -> tuple[str, ...]:
    """The names by which feature groups call what a section makes; a sequence has one for each part."""
    return tuple(feature.name for feature in named_features([config]))
