"""feature_configs -> features: one builder per type, all problems at once."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
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
    if used_names is not None:
        _tell_unused(feature_configs, used_names)
    features: list[Feature] = []
    problems: list[Problem] = []
    for index, config in enumerate(feature_configs):
        if used_names is not None and not _is_used(config, used_names):
            continue
        try:
            features.append(_build(config, parsing))
        except ConfigError as error:
            problems += [_below(f"feature_configs[{index}]", problem) for problem in error.problems]
    if problems:
        raise ConfigError(problems)
    return features


def feature_names(config: FeatureConfig) -> tuple[str, ...]:
    """The names by which feature groups call what a section makes; a sequence has one for each part."""
    return tuple(feature.name for feature in named_features([config]))


def _build(config: FeatureConfig, parsing: ParsingSection) -> Feature:
    kind, section = _chosen(config)
    if kind not in FEATURE_TYPES:
        raise ConfigError.at(kind, f"not available yet; available: {', '.join(FEATURE_TYPES)}")
    try:
        return FEATURE_TYPES.get(kind)(section, parsing)
    except ConfigError as error:
        raise ConfigError([_below(kind, problem) for problem in error.problems]) from error


def _chosen(config: FeatureConfig) -> tuple[str, Any]:
    chosen = config.chosen("feature")
    if chosen is None:
        raise ConfigError("a feature without a type")
    return chosen


def _below(path: str, problem: Problem) -> Problem:
    return replace(problem, path=f"{path}.{problem.path}" if problem.path else path)


def _is_used(config: FeatureConfig, used_names: Collection[str]) -> bool:
    return any(name in used_names for name in feature_names(config))


def _tell_unused(feature_configs: Sequence[FeatureConfig], used_names: Collection[str]) -> None:
    names = [name for config in feature_configs for name in feature_names(config)]
    unused = [name for name in names if name not in used_names]
    if unused:
        _logger.info(
            "%d of %d features are in no feature group and are not read: %s",
            len(unused),
            len(names),
            ", ".join(unused),
        )
