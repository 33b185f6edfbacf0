"""The run file: the only place that knows every section, and the checks that no section can make alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from pydantic import Field, model_validator

from penstock.config.errors import KeyPath, Problem, format_path
from penstock.config.nearest import hint
from penstock.config.registry import result_name
from penstock.config.section import Paths, Section, raise_problems
from penstock.data.sections import BatchingSection
from penstock.export.sections import ExportConfig
from penstock.features.sections import FeatureConfig, NamedFeature, ParsingSection, named_features
from penstock.features.sections.options import ID_SIZES
from penstock.features.sections.types import WIDTH_STEP, has_table, table_rows
from penstock.models.sections import ModelConfig
from penstock.models.sections.groups import GroupedModel
from penstock.models.sections.rank import DeepFM
from penstock.models.sections.towers import TowerOptions
from penstock.prep.sections import Preprocessing
from penstock.readers.sections import ReadingSection
from penstock.runtime.sections import MemorySection
from penstock.sampling.sections import SamplerSection
from penstock.tensors.sections import LoadingSection
from penstock.training.sections import EvalConfig, TrainConfig


class DataConfig(LoadingSection, SamplerSection, ParsingSection, BatchingSection, ReadingSection):
    """Reading and batching; each part stands beside its owner."""


class RunConfig(Section):
    """A whole run file."""

    train_input_path: Paths = ""
    """Training data: a path, glob, directory or URL; several with commas between them, or as a list."""

    eval_input_path: Paths = ""
    """Evaluation data, written in the same ways."""

    model_dir: str = ""
    """Where everything of the run goes."""

    memory: MemorySection = Field(default_factory=MemorySection)
    """How much memory the run may use."""

    data_config: DataConfig = Field(default_factory=DataConfig)
    """Reading and batching."""

    feature_configs: list[FeatureConfig] = []
    """The features."""

    model: ModelConfig | None = Field(default=None, alias="model_config")
    """What is learned; `model_config` in the file."""

    train_config: TrainConfig | None = None
    """How long to train, how often to save, and with what."""

    eval_config: EvalConfig = Field(default_factory=EvalConfig)
    """How evaluation runs."""

    export_config: ExportConfig = Field(default_factory=ExportConfig)
    """Which checkpoint is used or becomes an artifact."""

    preprocessing: Preprocessing | None = None
    """From raw files to array stores."""

    @model_validator(mode="after")
    def _sections_agree(self) -> Self:
        raise_problems(self, run_findings(self))
        return self


_SHARED_OPTIONS = ("embedding_dim", "pooling", "init_fn", "trainable", "data_type")
"""What features that share a table must agree on, beside its rows."""


def run_findings(run: RunConfig) -> Iterator[Problem]:
    features = list(named_features(run.feature_configs))
    yield from _feature_findings(features)
    train = run.train_config
    owner = next((feature.name for feature in features if has_table(feature.section)), None)
    if owner is not None and train is not None and train.sparse_optimizer is None:
        yield Problem(("train_config", "sparse_optimizer"), f"is required: '{owner}' has an embedding table")
    if run.model is not None:
        by_name: dict[str, NamedFeature] = {}
        for feature in features:
            by_name.setdefault(feature.name, feature)
        yield from _group_findings(run.model, by_name)
        yield from _task_findings(("model_config",), run.model)
        yield from _vector_findings(run.model, by_name)
        yield from _tower_findings(run.model, run.data_config)


def _feature_findings(features: Sequence[NamedFeature]) -> Iterator[Problem]:
    """Names are used once, tables have a width that their kernel can read, and who shares one means the same."""
    first: dict[str, KeyPath] = {}
    for feature in features:
        earlier = first.setdefault(feature.name, feature.place)
        if earlier != feature.place:
            message = f"'{feature.name}' is there already, in {format_path(earlier)}"
            yield Problem((*feature.place, "feature_name"), message)
    owners: dict[str, NamedFeature] = {}
    for feature in features:
        key, section = feature.place, feature.section
        if not has_table(section):
            continue
        yield from _width_findings((*key, "embedding_dim"), section.embedding_dim)
        if getattr(section, "weighted", False) and section.pooling == "mean":
            yield Problem((*key, "pooling"), "a weighted feature cannot be pooled by mean; use sum")
        table = section.embedding_name or f"{feature.name}_emb"
        owner = owners.setdefault(table, feature)
        shares = f"but '{owner.name}' shares the table '{table}' and has"
        for option in _SHARED_OPTIONS:
            mine, theirs = getattr(section, option), getattr(owner.section, option)
            if mine != theirs:
                own = "is absent" if mine is None else f"is {mine}"
                yield Problem((*key, option), f"{own}, {shares} {'none' if theirs is None else theirs}")
        rows, owner_rows = table_rows(section), table_rows(owner.section)
        if rows is not None and owner_rows is not None and rows != owner_rows:
            option = next((option for option in ID_SIZES if getattr(section, option, None)), "boundaries")
            yield Problem((*key, option), f"makes {rows} rows, {shares} {owner_rows}")


def _width_findings(path: KeyPath, width: int) -> Iterator[Problem]:
    if width % WIDTH_STEP:
        yield Problem(path, f"is {width}, not a multiple of {WIDTH_STEP}; use {width + -width % WIDTH_STEP}")


def _group_findings(model: ModelConfig, features: Mapping[str, NamedFeature]) -> Iterator[Problem]:
    """Groups hold features that there are, and are those that the model reads."""
    path, groups = ("model_config", "feature_groups"), model.feature_groups
    for index, group in enumerate(groups):
        key = (*path, index, "feature_names")
        if not group.feature_names and not group.sequence_groups:
            yield Problem(key, "is empty")
        yield from _unknown(key, group.feature_names, list(features), "feature")
        yield from _repeated((*path, index, "feature_names"), "", group.feature_names)
        for number, inner in enumerate(group.sequence_groups):
            inner_key = (*path, index, "sequence_groups", number, "feature_names")
            yield from _unknown(inner_key, inner.feature_names, list(features), "feature")
    yield from _repeated(path, "group_name", [group.group_name for group in groups])
    chosen = model.chosen("model")
    if chosen is None or not isinstance(chosen[1], GroupedModel):
        return
    name, section = chosen
    known = {**section.required_groups, **section.optional_groups}
    for index, group in enumerate(groups):
        expected = known.get(group.group_name)
        if expected is None:
            message = f"{name} has no group '{group.group_name}'; {hint(group.group_name, known)}"
            yield Problem((*path, index, "group_name"), message)
        elif group.group_type is not expected:
            message = f"is {group.group_type}; the group '{group.group_name}' of {name} is {expected}"
            yield Problem((*path, index, "group_type"), message)
    for required, group_type in section.required_groups.items():
        if all(group.group_name != required for group in groups):
            yield Problem(path, f"{name} needs a group '{required}' of type {group_type}")
    wide_width = getattr(section, "wide_embedding_dim", 0)
    yield from _width_findings(("model_config", name, "wide_embedding_dim"), wide_width)


def _vector_findings(model: ModelConfig, features: Mapping[str, NamedFeature]) -> Iterator[Problem]:
    """DeepFM multiplies vectors of one width: those of the group `fm`, or else of the ids of `deep`."""
    chosen = model.chosen("model")
    groups = {group.group_name: (index, group) for index, group in enumerate(model.feature_groups)}
    found = groups.get("fm") or groups.get("deep")
    if chosen is None or not isinstance(chosen[1], DeepFM) or found is None:
        return
    index, group = found
    key = ("model_config", "feature_groups", index, "feature_names")
    vectors: list[NamedFeature] = []
    for position, name in enumerate(group.feature_names):
        if name in features and has_table(features[name].section):
            vectors.append(features[name])
        elif name in features and group.group_name == "fm":
            yield Problem((*key, position), f"'{name}' has no embedding; the group 'fm' takes vectors")
    if not vectors and group.feature_names:
        yield Problem(key, "deepfm needs a feature with an embedding here, or a group 'fm' of such features")
    for feature in vectors[1:]:
        width, first_width = feature.section.embedding_dim, vectors[0].section.embedding_dim
        if width != first_width:
            yield Problem(
                (*feature.place, "embedding_dim"),
                f"is {width}, but '{vectors[0].name}' has {first_width}; "
                "the factorisation machine needs one for all of its features",
            )


def _task_findings(path: KeyPath, task: ModelConfig | TowerOptions) -> Iterator[Problem]:
    """Results have names of their own, and metrics a meaning with the task's num_class."""
    names: dict[str, list[str | None]] = {
        key: [result_name(*chosen) if (chosen := section.chosen(group)) else None for section in sections]
        for key, group, sections in (("metrics", "metric", task.metrics), ("losses", "loss", task.losses))
    }
    if isinstance(task, ModelConfig):
        yield from _repeated((*path, "metrics"), "", names["metrics"])
        yield from _repeated((*path, "losses"), "", names["losses"])
    for index, name in enumerate(names["metrics"]):
        if name is not None and name in names["losses"]:
            # A custom metric with the name of a loss would hide it among the results.
            message = f"'{name}' is the name of a loss; choose another"
            yield Problem((*path, "metrics", index, "custom_metric", "name"), message)
    for key in ("metrics", "train_metrics"):
        for index, metric in enumerate(getattr(task, key)):
            name, section = metric.chosen("metric")
            for inner, message in section.class_problems(task.num_class):
                yield Problem((*path, key, index, name, *inner), message)


def _tower_findings(model: ModelConfig, data: DataConfig) -> Iterator[Problem]:
    """Towers name labels, weights and other towers; each must be there."""
    chosen, towers = model.chosen("model"), model.task_towers
    if chosen is None or not towers:
        return
    path, names = ("model_config", chosen[0], "task_towers"), [tower.tower_name for tower in towers]
    yield from _repeated(path, "tower_name", names)
    for index, tower in enumerate(towers):
        yield from _task_findings((*path, index), tower)
        for field, known, kind in (
            ("label_name", data.label_fields, "label in data_config.label_fields"),
            ("task_space_indicator_label", data.label_fields, "label in data_config.label_fields"),
            ("sample_weight_name", data.sample_weight_fields, "column in data_config.sample_weight_fields"),
            ("relation_tower_names", names, "tower"),
            ("intervention_tower_names", names, "tower"),
        ):
            value: Any = getattr(tower, field, None)
            if isinstance(value, list):
                yield from _unknown((*path, index, field), value, known, kind)
            elif value and value not in known:
                message = f"there is no {kind} named '{value}'; {hint(value, known)}"
                yield Problem((*path, index, field), message)


def _unknown(path: KeyPath, names: Sequence[str], known: Sequence[str], kind: str) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in known:
            yield Problem((*path, index), f"there is no {kind} named '{name}'; {hint(name, known)}")


def _repeated(path: KeyPath, key: str, names: Sequence[str | None]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            yield Problem((*path, index, *filter(None, [key])), f"'{name}' is there already")
