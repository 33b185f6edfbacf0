"""What a run file says about embedding tables: widths, who shares one, what a factorisation machine multiplies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.config.errors import Problem
from penstock.features.sections.named import NamedFeature
from penstock.features.sections.options import ID_SIZES
from penstock.features.sections.table_shape import WIDTH_STEP, has_table, table_rows
from penstock.loops.sections import TrainConfig
from penstock.models.sections import DeepFM, FeatureGroupConfig, ModelConfig

_SHARED_OPTIONS = ("embedding_dim", "pooling", "init_fn", "trainable", "data_type")
"""What features that share a table must agree on, beside its rows."""


def table_findings(features: Sequence[NamedFeature]) -> Iterator[Problem]:
    """Everything that is wrong with the tables of the features."""
    first: dict[str, NamedFeature] = {}
    for feature in features:
        if not has_table(feature.section):
            continue
        yield from width_findings((*feature.place, "embedding_dim"), feature.section.embedding_dim)
        if getattr(feature.section, "weighted", False) and feature.section.pooling == "mean":
            yield Problem((*feature.place, "pooling"), "a weighted feature cannot be pooled by mean; use sum")
        table = feature.section.embedding_name or f"{feature.name}_emb"
        yield from _sharing(table, feature, first.setdefault(table, feature))


def optimizer_findings(features: Sequence[NamedFeature], train: TrainConfig | None) -> Iterator[Problem]:
    """Tables learn by an optimizer of their own, which a run without tables need not name."""
    if train is None or train.sparse_optimizer is not None:
        return
    owner = next((feature.name for feature in features if has_table(feature.section)), None)
    if owner is not None:
        yield Problem(("train_config", "sparse_optimizer"), f"is required: '{owner}' has an embedding table")


def width_findings(place: tuple[str | int, ...], width: int) -> Iterator[Problem]:
    """A width that the kernel of the tables cannot read."""
    if width % WIDTH_STEP:
        yield Problem(place, f"is {width}, not a multiple of {WIDTH_STEP}; use {width + -width % WIDTH_STEP}")


def _sharing(table: str, feature: NamedFeature, owner: NamedFeature) -> Iterator[Problem]:
    """Features that share a table must mean the same table."""
    shares = f"but '{owner.name}' shares the table '{table}' and has"
    for option in _SHARED_OPTIONS:
        mine, theirs = getattr(feature.section, option), getattr(owner.section, option)
        if mine != theirs:
            told = "is absent" if mine is None else f"is {mine}"
            yield Problem(
                (*feature.place, option), f"{told}, {shares} {'none' if theirs is None else theirs}"
            )
    rows, owner_rows = table_rows(feature.section), table_rows(owner.section)
    if rows is not None and owner_rows is not None and rows != owner_rows:
        place = (*feature.place, _size_option(feature.section))
        yield Problem(place, f"makes {rows} rows, {shares} {owner_rows}")


def _size_option(section: Any) -> str:
    """The option that says how many rows a table has."""
    return next((option for option in ID_SIZES if getattr(section, option, None)), "boundaries")


def factorisation_findings(model: ModelConfig, features: Mapping[str, NamedFeature]) -> Iterator[Problem]:
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
        yield Problem(
            place, "deepfm needs a feature with an embedding here, or a group 'fm' of such features"
        )
    for feature in vectors[1:]:
        if feature.section.embedding_dim != vectors[0].section.embedding_dim:
            yield Problem(
                (*feature.place, "embedding_dim"),
                f"is {feature.section.embedding_dim}, but '{vectors[0].name}' has "
                f"{vectors[0].section.embedding_dim}; the factorisation machine needs one for all of its features",
            )


def _without_vector(
    place: tuple[str | int, ...], group: FeatureGroupConfig, features: Mapping[str, NamedFeature]
) -> Iterator[Problem]:
    for position, name in enumerate(group.feature_names):
        if name in features and not has_table(features[name].section):
            yield Problem((*place, position), f"'{name}' has no embedding; the group 'fm' takes vectors")


def _has_vector(name: str, features: Mapping[str, NamedFeature]) -> bool:
    return name in features and has_table(features[name].section)
