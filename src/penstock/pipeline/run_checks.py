"""What no section can see alone: features against groups, groups against models, towers against labels.

These checks read the run file only. What needs the data or the built model is checked where that is at hand.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.config.findings import Finding
from penstock.config.nearest import hint
from penstock.config.paths import KeyPath, format_path
from penstock.config.section import Section
from penstock.features.sections import FeatureConfig, SequenceFeature
from penstock.models.sections import FeatureGroupConfig, GroupedModel, ModelConfig

if TYPE_CHECKING:
    from penstock.pipeline.run_config import DataConfig, RunConfig

_SHARED_OPTIONS = ("embedding_dim", "num_buckets", "hash_bucket_size", "pooling", "trainable", "data_type")
"""What features that share a table must agree on, where both say it."""


def run_findings(run: "RunConfig") -> Iterator[Finding]:
    """Everything that is wrong between the sections of a run file."""
    features = list(named_features(run.feature_configs))
    yield from _names_once(features)
    yield from _shared_tables(features)
    if run.model is not None:
        names = list(dict.fromkeys(name for _, name, _ in features))
        yield from _below(("model_config",), _model_findings(run.model, names))
        yield from _below(("model_config",), _tower_findings(run.model, run.data_config))


def named_features(configs: Sequence[FeatureConfig]) -> Iterator[tuple[KeyPath, str, Section]]:
    """Every feature with its place and name; features of a sequence are called sequence__feature."""
    for index, config in enumerate(configs):
        chosen = config.chosen("feature")
        if chosen is None:
            continue
        kind, section = chosen
        place: KeyPath = ("feature_configs", index, kind)
        if not isinstance(section, SequenceFeature):
            yield place, section.feature_name, section
            continue
        for position, step in enumerate(section.features):
            if (inner := step.chosen("feature")) is not None:
                name = f"{section.sequence_name}__{inner[1].feature_name}"
                yield (*place, "features", position, inner[0]), name, inner[1]


def _names_once(features: Sequence[tuple[KeyPath, str, Section]]) -> Iterator[Finding]:
    first: dict[str, KeyPath] = {}
    for place, name, _ in features:
        if name in first:
            yield Finding(
                (*place, "feature_name"), f"'{name}' is there already, in {format_path(first[name])}"
            )
        first.setdefault(name, place)


def _shared_tables(features: Sequence[tuple[KeyPath, str, Section]]) -> Iterator[Finding]:
    """Features with one embedding_name share a table, so they must mean the same table."""
    first: dict[str, tuple[str, Any]] = {}
    for place, name, feature in features:
        table = getattr(feature, "embedding_name", None)
        if not table:
            continue
        owner, other = first.setdefault(table, (name, feature))
        for option in _SHARED_OPTIONS:
            mine, theirs = getattr(feature, option, None), getattr(other, option, None)
            if mine is not None and theirs is not None and mine != theirs:
                message = f"is {mine}, but '{owner}' shares the table '{table}' and has {theirs}"
                yield Finding((*place, option), message)


def _model_findings(model: ModelConfig, features: Sequence[str]) -> Iterator[Finding]:
    for index, group in enumerate(model.feature_groups):
        yield from _below(("feature_groups", index), _group_findings(group, features))
    yield from _repeated(
        ("feature_groups",), "group_name", [group.group_name for group in model.feature_groups]
    )
    yield from _repeated(("metrics",), "", [_chosen_name(metric, "metric") for metric in model.metrics])
    yield from _repeated(("losses",), "", [_chosen_name(loss, "loss") for loss in model.losses])
    chosen = model.chosen("model")
    if chosen is not None and isinstance(chosen[1], GroupedModel):
        yield from _below(("feature_groups",), _model_groups(chosen[0], chosen[1], model.feature_groups))


def _group_findings(group: FeatureGroupConfig, features: Sequence[str]) -> Iterator[Finding]:
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
        for field, known, kind in (
            ("label_name", data.label_fields, "label in data_config.label_fields"),
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


def _chosen_name(section: Section, group: str) -> str | None:
    chosen = section.chosen(group)
    return chosen[0] if chosen else None


def _below(place: KeyPath, findings: Iterator[Finding]) -> Iterator[Finding]:
    return (Finding((*place, *finding.place), finding.message) for finding in findings)
