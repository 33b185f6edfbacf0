"""What no section can see alone: features against groups, groups against models, towers against labels.

These checks read the run file only. What needs the data or the built model is checked where that is at hand.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.config.errors import KeyPath, Problem, format_path
from penstock.config.nearest import hint
from penstock.config.registry import result_name
from penstock.config.section import Section
from penstock.features.sections.named import NamedFeature, named_features
from penstock.models.sections import FeatureGroupConfig, GroupedModel, ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.pipeline.class_checks import class_findings
from penstock.pipeline.table_checks import (
    factorisation_findings,
    optimizer_findings,
    table_findings,
    width_findings,
)

if TYPE_CHECKING:
    from penstock.pipeline.run_config import DataConfig, RunConfig


def run_findings(run: "RunConfig") -> Iterator[Problem]:
    """Everything that is wrong between the sections of a run file."""
    features = list(named_features(run.feature_configs))
    yield from _names_once(features)
    yield from table_findings(features)
    yield from optimizer_findings(features, run.train_config)
    if run.model is not None:
        by_name: dict[str, NamedFeature] = {}
        for feature in features:
            by_name.setdefault(feature.name, feature)
        yield from _below(("model_config",), _model_findings(run.model, list(by_name)))
        yield from factorisation_findings(run.model, by_name)
        yield from _below(("model_config",), _tower_findings(run.model, run.data_config))


def _names_once(features: Sequence[NamedFeature]) -> Iterator[Problem]:
    first: dict[str, KeyPath] = {}
    for feature in features:
        earlier = first.setdefault(feature.name, feature.place)
        if earlier != feature.place:
            message = f"'{feature.name}' is there already, in {format_path(earlier)}"
            yield Problem((*feature.place, "feature_name"), message)


def _model_findings(model: ModelConfig, features: Sequence[str]) -> Iterator[Problem]:
    for index, group in enumerate(model.feature_groups):
        yield from _below(("feature_groups", index), _group_findings(group, features))
    yield from _repeated(
        ("feature_groups",), "group_name", [group.group_name for group in model.feature_groups]
    )
    yield from _repeated(("metrics",), "", [_chosen_name(metric, "metric") for metric in model.metrics])
    yield from _repeated(("losses",), "", [_chosen_name(loss, "loss") for loss in model.losses])
    yield from _metrics_named_as_losses(model)
    yield from class_findings(model)
    chosen = model.chosen("model")
    if chosen is not None and isinstance(chosen[1], GroupedModel):
        yield from _below(("feature_groups",), _model_groups(chosen[0], chosen[1], model.feature_groups))
        wide_width = getattr(chosen[1], "wide_embedding_dim", 0)
        yield from width_findings((chosen[0], "wide_embedding_dim"), wide_width)


def _group_findings(group: FeatureGroupConfig, features: Sequence[str]) -> Iterator[Problem]:
    if not group.feature_names and not group.sequence_groups:
        yield Problem(("feature_names",), "is empty")
    yield from _known_names(("feature_names",), group.feature_names, features, "feature")
    yield from _repeated(("feature_names",), "", group.feature_names)
    for index, inner in enumerate(group.sequence_groups):
        place = ("sequence_groups", index, "feature_names")
        yield from _known_names(place, inner.feature_names, features, "feature")


def _model_groups(name: str, model: GroupedModel, groups: Sequence[FeatureGroupConfig]) -> Iterator[Problem]:
    known = {**model.required_groups, **model.optional_groups}
    for index, group in enumerate(groups):
        expected = known.get(group.group_name)
        if expected is None:
            message = f"{name} has no group '{group.group_name}'; {hint(group.group_name, known)}"
            yield Problem((index, "group_name"), message)
        elif group.group_type is not expected:
            message = f"is {group.group_type}; the group '{group.group_name}' of {name} is {expected}"
            yield Problem((index, "group_type"), message)
    written = {group.group_name for group in groups}
    for required, group_type in model.required_groups.items():
        if required not in written:
            yield Problem((), f"{name} needs a group '{required}' of type {group_type}")


def _tower_findings(model: ModelConfig, data: "DataConfig") -> Iterator[Problem]:
    """Towers name labels, weights and other towers; each must be there."""
    chosen = model.chosen("model")
    towers = getattr(chosen[1], "task_towers", None) if chosen is not None else None
    if chosen is None or not towers:
        return
    names = [tower.tower_name for tower in towers]
    yield from _repeated((chosen[0], "task_towers"), "tower_name", names)
    for index, tower in enumerate(towers):
        place = (chosen[0], "task_towers", index)
        yield from _below(place, _metrics_named_as_losses(tower))
        yield from _below(place, class_findings(tower))
        for field, known, kind in (
            ("label_name", data.label_fields, "label in data_config.label_fields"),
            ("task_space_indicator_label", data.label_fields, "label in data_config.label_fields"),
            ("sample_weight_name", data.sample_weight_fields, "column in data_config.sample_weight_fields"),
            ("relation_tower_names", names, "tower"),
            ("intervention_tower_names", names, "tower"),
        ):
            value = getattr(tower, field, None)
            if isinstance(value, list):
                yield from _known_names((*place, field), value, known, kind)
            elif value and value not in known:
                yield Problem((*place, field), f"there is no {kind} named '{value}'; {hint(value, known)}")


def _known_names(place: KeyPath, names: Sequence[str], known: Sequence[str], kind: str) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            yield Problem((*place, index), f"there is no {kind} named '{name}'; {hint(name, known)}")


def _repeated(place: KeyPath, key: str, names: Sequence[str | None]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            yield Problem((*place, index, *filter(None, [key])), f"'{name}' is there already")


def _metrics_named_as_losses(task: ModelConfig | TowerOptions) -> Iterator[Problem]:
    """Losses are results too: a metric of one's own with the name of one would hide it."""
    losses = {_chosen_name(loss, "loss") for loss in task.losses}
    for index, metric in enumerate(task.metrics):
        name = _chosen_name(metric, "metric")
        if name is not None and name in losses:
            yield Problem(
                ("metrics", index, "custom_metric", "name"), f"'{name}' is the name of a loss; choose another"
            )


def _chosen_name(section: Section, group: str) -> str | None:
    chosen = section.chosen(group)
    return result_name(*chosen) if chosen else None


def _below(place: KeyPath, findings: Iterator[Problem]) -> Iterator[Problem]:
    return (Problem((*place, *finding.path), finding.message) for finding in findings)
