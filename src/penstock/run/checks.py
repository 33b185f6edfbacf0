"""Checks that no section can make alone: features, groups, tables, classes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.config.custom import result_name
from penstock.config.findings import Finding
from penstock.config.nearest import hint
from penstock.config.paths import KeyPath, format_path
from penstock.config.section import Section
from penstock.features.sections.named import NamedFeature, named_features
from penstock.features.sections.options import ID_SIZES
from penstock.features.sections.table_shape import WIDTH_STEP, has_table, table_rows
from penstock.models.sections.groups import FeatureGroupConfig, GroupedModel
from penstock.models.sections.model import ModelConfig
from penstock.models.sections.rank import DeepFM
from penstock.models.sections.towers import TowerOptions
from penstock.training.sections import TrainConfig

if TYPE_CHECKING:
    from penstock.run.run_config import DataConfig, RunConfig

_SHARED_OPTIONS = ("embedding_dim", "pooling", "init_fn", "trainable", "data_type")
"""What features that share a table must agree on, beside its rows."""


def table_findings(features: Sequence[NamedFeature]) -> Iterator[Finding]:
    """Everything that is wrong with the tables of the features."""
    first: dict[str, NamedFeature] = {}
    for feature in features:
        if not has_table(feature.section):
            continue
        yield from width_findings((*feature.place, "embedding_dim"), feature.section.embedding_dim)
        if getattr(feature.section, "weighted", False) and feature.section.pooling == "mean":
            yield Finding((*feature.place, "pooling"), "a weighted feature cannot be pooled by mean; use sum")
        table = feature.section.embedding_name or f"{feature.name}_emb"
        yield from _sharing(table, feature, first.setdefault(table, feature))


def optimizer_findings(features: Sequence[NamedFeature], train: TrainConfig | None) -> Iterator[Finding]:
    """Tables learn by an optimizer of their own, which a run without tables need not name."""
    if train is None or train.sparse_optimizer is not None:
        return
    owner = next((feature.name for feature in features if has_table(feature.section)), None)
    if owner is not None:
        yield Finding(("train_config", "sparse_optimizer"), f"is required: '{owner}' has an embedding table")


def width_findings(place: tuple[str | int, ...], width: int) -> Iterator[Finding]:
    """A width that the kernel of the tables cannot read."""
    if width % WIDTH_STEP:
        yield Finding(place, f"is {width}, not a multiple of {WIDTH_STEP}; use {width + -width % WIDTH_STEP}")


def _sharing(table: str, feature: NamedFeature, owner: NamedFeature) -> Iterator[Finding]:
    """Features that share a table must mean the same table."""
    shares = f"but '{owner.name}' shares the table '{table}' and has"
    for option in _SHARED_OPTIONS:
        mine, theirs = getattr(feature.section, option), getattr(owner.section, option)
        if mine != theirs:
            told = "is absent" if mine is None else f"is {mine}"
            yield Finding(
                (*feature.place, option), f"{told}, {shares} {'none' if theirs is None else theirs}"
            )
    rows, owner_rows = table_rows(feature.section), table_rows(owner.section)
    if rows is not None and owner_rows is not None and rows != owner_rows:
        place = (*feature.place, _size_option(feature.section))
        yield Finding(place, f"makes {rows} rows, {shares} {owner_rows}")


def _size_option(section: Any) -> str:
    """The option that says how many rows a table has."""
    return next((option for option in ID_SIZES if getattr(section, option, None)), "boundaries")


def factorisation_findings(model: ModelConfig, features: Mapping[str, NamedFeature]) -> Iterator[Finding]:
    """DeepFM multiplies vectors of one width: those of the group `fm`, or else of the ids of `deep`."""
    chosen = model.chosen("model")
    groups = {group.group_name: (index, group) for index, group in enumerate(model.feature_groups)}
    found = groups.get("fm") or groups.get("deep")
    if chosen is None or not isinstance(chosen[1], DeepFM) or found is None:
        return
    index, group = found
    place = ("model_config", "feature_groups", index, "feature_names")
    if group.group_name == "fm":
        yield from _without_vector(place, group, features)
    vectors = [features[name] for name in group.feature_names if _has_vector(name, features)]
    if not vectors and group.feature_names:
        yield Finding(
            place, "deepfm needs a feature with an embedding here, or a group 'fm' of such features"
        )
    for feature in vectors[1:]:
        if feature.section.embedding_dim != vectors[0].section.embedding_dim:
            yield Finding(
                (*feature.place, "embedding_dim"),
                f"is {feature.section.embedding_dim}, but '{vectors[0].name}' has "
                f"{vectors[0].section.embedding_dim}; the factorisation machine needs one for all of its features",
            )


def _without_vector(
    place: tuple[str | int, ...], group: FeatureGroupConfig, features: Mapping[str, NamedFeature]
) -> Iterator[Finding]:
    for position, name in enumerate(group.feature_names):
        if name in features and not has_table(features[name].section):
            yield Finding((*place, position), f"'{name}' has no embedding; the group 'fm' takes vectors")


def _has_vector(name: str, features: Mapping[str, NamedFeature]) -> bool:
    return name in features and has_table(features[name].section)


def class_findings(task: ModelConfig | TowerOptions) -> Iterator[Finding]:
    """Metrics of a task that have no meaning with its num_class."""
    for key in ("metrics", "train_metrics"):
        for index, metric in enumerate(getattr(task, key)):
            if metric.multiclass_auc is not None and task.num_class < 2:
                yield Finding((key, index, "multiclass_auc"), "needs num_class 2 or more; it is 1: use auc")
            top_k = 1 if metric.accuracy is None else metric.accuracy.top_k
            if top_k > 1 and top_k >= task.num_class:
                yield Finding((key, index, "accuracy", "top_k"), _too_large(top_k, task.num_class))


def _too_large(top_k: int, num_class: int) -> str:
    if num_class < 2:
        return f"is {top_k}, but with num_class 1 a threshold decides; leave it out"
    return f"is {top_k} of {num_class} classes, with which every row would be right; lower it"


def run_findings(run: "RunConfig") -> Iterator[Finding]:
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


def _names_once(features: Sequence[NamedFeature]) -> Iterator[Finding]:
    first: dict[str, KeyPath] = {}
    for feature in features:
        earlier = first.setdefault(feature.name, feature.place)
        if earlier != feature.place:
            message = f"'{feature.name}' is there already, in {format_path(earlier)}"
            yield Finding((*feature.place, "feature_name"), message)


def _model_findings(model: ModelConfig, features: Sequence[str]) -> Iterator[Finding]:
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


def _group_findings(group: FeatureGroupConfig, features: Sequence[str]) -> Iterator[Finding]:
    if not group.feature_names and not group.sequence_groups:
        yield Finding(("feature_names",), "is empty")
    yield from _known_names(("feature_names",), group.feature_names, features, "feature")
    yield from _repeated(("feature_names",), "", group.feature_names)
    for index, inner in enumerate(group.sequence_groups):
        place = ("sequence_groups", index, "feature_names")
        yield from _known_names(place, inner.feature_names, features, "feature")


def _model_groups(name: str, model: GroupedModel, groups: Sequence[FeatureGroupConfig]) -> Iterator[Finding]:
    known = {**model.required_groups, **model.optional_groups}
    for index, group in enumerate(groups):
        expected = known.get(group.group_name)
        if expected is None:
            message = f"{name} has no group '{group.group_name}'; {hint(group.group_name, known)}"
            yield Finding((index, "group_name"), message)
        elif group.group_type is not expected:
            message = f"is {group.group_type}; the group '{group.group_name}' of {name} is {expected}"
            yield Finding((index, "group_type"), message)
    written = {group.group_name for group in groups}
    for required, group_type in model.required_groups.items():
        if required not in written:
            yield Finding((), f"{name} needs a group '{required}' of type {group_type}")


def _tower_findings(model: ModelConfig, data: "DataConfig") -> Iterator[Finding]:
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
                yield Finding((*place, field), f"there is no {kind} named '{value}'; {hint(value, known)}")


def _known_names(place: KeyPath, names: Sequence[str], known: Sequence[str], kind: str) -> Iterator[Finding]:
    for index, name in enumerate(names):
        if name not in known:
            yield Finding((*place, index), f"there is no {kind} named '{name}'; {hint(name, known)}")


def _repeated(place: KeyPath, key: str, names: Sequence[str | None]) -> Iterator[Finding]:
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            yield Finding((*place, index, *filter(None, [key])), f"'{name}' is there already")


def _metrics_named_as_losses(task: ModelConfig | TowerOptions) -> Iterator[Finding]:
    """Losses are results too: a metric of one's own with the name of one would hide it."""
    losses = {_chosen_name(loss, "loss") for loss in task.losses}
    for index, metric in enumerate(task.metrics):
        name = _chosen_name(metric, "metric")
        if name is not None and name in losses:
            yield Finding(
                ("metrics", index, "custom_metric", "name"), f"'{name}' is the name of a loss; choose another"
            )


def _chosen_name(section: Section, group: str) -> str | None:
    chosen = section.chosen(group)
    return result_name(*chosen) if chosen else None


def _below(place: KeyPath, findings: Iterator[Finding]) -> Iterator[Finding]:
    return (Finding((*place, *finding.place), finding.message) for finding in findings)
