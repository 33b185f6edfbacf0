"""The columns that metrics group rows by: carried along by batches, unread by the model."""

from collections.abc import Iterator, Sequence

from penstock.config.section import Section
from penstock.features.build import build_features, feature_names
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.pipeline.requirements import model_section, towers_of
from penstock.pipeline.run_config import RunConfig


def group_columns(run: RunConfig, *, training: bool) -> dict[str, str]:
    """The data column of every grouping_key: that of the feature of this name, or else the one called so."""
    keys = list(dict.fromkeys(_grouping_keys(model_section(run), training)))
    return columns_of(run, keys)


def columns_of(run: RunConfig, names: Sequence[str]) -> dict[str, str]:
    """The data column of every name: that of the feature of this name, or else the one called so."""
    named = [config for config in run.feature_configs if set(feature_names(config)) & set(names)]
    inputs = {feature.name: feature.inputs for feature in build_features(named, run.data_config)}
    return {name: inputs[name][0] if name in inputs else name for name in names}


def _grouping_keys(model: ModelConfig, training: bool) -> Iterator[str]:
    tasks: list[ModelConfig | TowerOptions] = [model, *towers_of(model)]
    for task in tasks:
        sections: Sequence[Section] = task.train_metrics if training else task.metrics
        for section in sections:
            chosen = section.chosen("metric")
            key = getattr(chosen[1], "grouping_key", None) if chosen is not None else None
            if key:
                yield key
