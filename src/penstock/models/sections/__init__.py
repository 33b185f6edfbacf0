"""Options of model_config, without torch: what is learned, on which features, and how well it does."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import PositiveInt

from penstock.config.errors import KeyPath, Problem, hint
from penstock.config.registry import result_name
from penstock.config.section import Later, Section
from penstock.features.sections import NamedFeature
from penstock.metrics.sections import MetricConfig, MetricSection, TrainMetricConfig, metric_names
from penstock.models.sections.groups import FeatureGroupConfig, GroupedModel
from penstock.models.sections.layers import VariationalDropout
from penstock.models.sections.match import DAT, DSSM, DSSMV2, MIND, TDM, HSTUMatch, SidRqkmeans, SidRqvae
from penstock.models.sections.multi_task import (
    DBMTL,
    DC2VR,
    PLE,
    DlrmHSTU,
    MMoE,
    PEPNet,
    SimpleMultiTask,
    UltraHSTU,
)
from penstock.models.sections.rank import (
    DCNV1,
    DCNV2,
    DLRM,
    DeepFM,
    MaskNet,
    MultiTower,
    MultiTowerDIN,
    RocketLaunching,
    WideAndDeep,
    WuKong,
    xDeepFM,
)
from penstock.models.sections.towers import LossConfig, TowerOptions


class Kernel(StrEnum):
    """Which implementation of the attention kernels to use."""

    TRITON = "TRITON"
    PYTORCH = "PYTORCH"
    CUTLASS = "CUTLASS"


class ModelRow(NamedTuple):
    """One model: its options, and where it is built, as "package.module:attribute"; empty: not available yet."""

    section: type[Section]
    path: str = ""


MODELS: Mapping[str, ModelRow] = {
    "dlrm": ModelRow(DLRM),
    "deepfm": ModelRow(DeepFM, "penstock.models.deepfm:DeepFM"),
    "multi_tower": ModelRow(MultiTower, "penstock.models.multi_tower:MultiTower"),
    "multi_tower_din": ModelRow(MultiTowerDIN, "penstock.models.multi_tower:MultiTowerDIN"),
    "mask_net": ModelRow(MaskNet),
    "wide_and_deep": ModelRow(WideAndDeep, "penstock.models.wide_and_deep:WideAndDeep"),
    "dcn_v1": ModelRow(DCNV1),
    "dcn_v2": ModelRow(DCNV2),
    "xdeepfm": ModelRow(xDeepFM),
    "wukong": ModelRow(WuKong),
    "simple_multi_task": ModelRow(SimpleMultiTask, "penstock.models.multi_task:SimpleMultiTask"),
    "mmoe": ModelRow(MMoE, "penstock.models.mmoe:MMoE"),
    "dbmtl": ModelRow(DBMTL),
    "ple": ModelRow(PLE),
    "dc2vr": ModelRow(DC2VR),
    "dlrm_hstu": ModelRow(DlrmHSTU),
    "pepnet": ModelRow(PEPNet),
    "ultra_hstu": ModelRow(UltraHSTU),
    "dssm": ModelRow(DSSM),
    "dssm_v2": ModelRow(DSSMV2),
    "dat": ModelRow(DAT),
    "hstu_match": ModelRow(HSTUMatch),
    "mind": ModelRow(MIND),
    "tdm": ModelRow(TDM),
    "rocket_launching": ModelRow(RocketLaunching),
    "sid_rqvae": ModelRow(SidRqvae),
    "sid_rqkmeans": ModelRow(SidRqkmeans),
}
"""The models of the run file, by the name of their section: `Model(model_config, section, inputs)`."""


class ModelConfig(
    Section,
    group="model",
    kinds={name: row.section for name, row in MODELS.items()},
    markers={name: Later(f"the model {name}") for name, row in MODELS.items() if not row.path},
):
    """What is learned, on which features, and how well it does."""

    feature_groups: list[FeatureGroupConfig] = []
    """Which features enter the model, and joined in which way."""

    num_class: PositiveInt = 1
    """Number of classes of the label."""

    losses: list[LossConfig] = []
    """What is minimised, where the model has one task."""

    metrics: list[MetricConfig] = []
    """What evaluation measures, where the model has one task."""

    train_metrics: list[TrainMetricConfig] = []
    """What is followed during training, where the model has one task."""

    variational_dropout: Annotated[VariationalDropout | None, Later("variational_dropout")] = None
    """Learned dropout rates that tell which features matter."""

    kernel: Annotated[Kernel, Later("a kernel other than PYTORCH", harmless=True)] = Kernel.PYTORCH
    """Which implementation of the attention kernels to use; falls back to PYTORCH on CPU."""

    use_pareto_loss_weight: bool = False
    """Find the weights of the tasks' losses at each step, so that no task gets worse."""

    @property
    def task_towers(self) -> Sequence[TowerOptions]:
        """The towers of the chosen model; none where it has one task."""
        chosen = self.chosen("model")
        return getattr(chosen[1], "task_towers", []) if chosen is not None else []

    def label_columns(
        self, label_fields: Sequence[str]
    ) -> tuple[tuple[str, ...], dict[str, int], tuple[str, ...]]:
        """Labels that a loss needs within 0 and 1, mask columns with their numbers of classes, and what tells
        sessions apart, for losses that compare rows of one session.

        A model with one task reads the first label, towers their own.
        """
        towers = self.task_towers
        tasks = [(getattr(tower, "label_name", None), tower.losses) for tower in towers]
        tasks.append((label_fields[0] if label_fields else None, self.losses))
        binary: dict[str, None] = {}
        sessions: dict[str, None] = {}
        for label, losses in tasks:
            for loss in losses:
                is_binary = loss.binary_cross_entropy is not None or loss.binary_focal_loss is not None
                if is_binary and label is not None:
                    binary[label] = None
                if loss.jrc_loss is not None:
                    sessions[loss.jrc_loss.session_name] = None
        masks = {tower.mask_name: tower.num_class for tower in towers if tower.mask_name is not None}
        return tuple(binary), masks, tuple(sessions)

    def results(self) -> dict[str, Section]:
        """The numbers that an evaluation gives, metrics and losses, task by task: names, and their sections."""
        tasks: list[tuple[str, Any]] = [("", self)]
        tasks += [(f"_{tower.tower_name}", tower) for tower in self.task_towers]
        found: dict[str, Section] = {}
        for suffix, task in tasks:
            metrics = (metric.chosen("metric") for metric in task.metrics)
            named = [*zip(metric_names(task.metrics), metrics, strict=True)]
            losses = (loss.chosen("loss") for loss in task.losses)
            named += [(result_name(*chosen), chosen) for chosen in losses if chosen is not None]
            found |= {f"{name}{suffix}": chosen[1] for name, chosen in named if chosen is not None}
        return found

    def loss_names(self) -> list[str]:
        """The losses among the results of an evaluation, with the tower's name behind them."""
        return [name for name, section in self.results().items() if not isinstance(section, MetricSection)]

    def resolve_names(self, features: Mapping[str, NamedFeature]) -> None:
        """Groups name their features in full, whatever the file says in short; what "*" leaves empty is no group."""
        aliases = [(each.alias, name) for name, each in features.items() if each.alias is not None]
        counts = Counter(alias for alias, _ in aliases)
        new_names = {alias: name for alias, name in aliases if counts[alias] == 1}
        for group in [*self.feature_groups]:
            had_any = bool(group.feature_names)
            group.resolve_names(features, new_names)
            if had_any and not group.feature_names and features:
                self.feature_groups.remove(group)

    def problems(
        self, features: Mapping[str, NamedFeature], labels: Sequence[str], weights: Sequence[str]
    ) -> Iterator[Problem]:
        """What does not go together: groups and their features, tasks and their results, towers and their columns."""
        path, groups = ("model_config", "feature_groups"), self.feature_groups
        for index, group in enumerate(groups):
            key = (*path, index, "feature_names")
            if not group.feature_names and not group.sequence_groups:
                yield Problem(key, "is empty")
            yield from group.problems((*path, index), features)
            yield from _unknown(key, group.feature_names, list(features), "feature")
            yield from _repeated(key, "", group.feature_names)
            for number, inner in enumerate(group.sequence_groups):
                inner_key = (*path, index, "sequence_groups", number, "feature_names")
                yield from _unknown(inner_key, inner.feature_names, list(features), "feature")
        yield from _repeated(path, "group_name", [group.group_name for group in groups])
        chosen, towers = self.chosen("model"), self.task_towers
        if chosen is not None and isinstance(chosen[1], GroupedModel):
            yield from chosen[1].group_problems(chosen[0], groups, features)
        yield from _task_problems(("model_config",), self)
        if chosen is not None and towers:
            yield from _tower_problems(("model_config", chosen[0], "task_towers"), towers, labels, weights)

    def unused_settings(self) -> Iterator[Problem]:
        """Weights of towers that wait for what they weigh."""
        chosen = self.chosen("model")
        for index, tower in enumerate(self.task_towers):
            path = f"model_config.{chosen[0] if chosen else ''}.task_towers[{index}]"
            if tower.pareto_min_loss_weight and not self.use_pareto_loss_weight:
                yield Problem(
                    f"{path}.pareto_min_loss_weight",
                    "is for weights that are found; set model_config.use_pareto_loss_weight: true, or leave it out",
                )
            for name in ("in_task_space_weight", "out_task_space_weight"):
                if getattr(tower, name) != 1 and not tower.task_space_indicator_label:
                    message = "needs task_space_indicator_label, which tells the rows of the space"
                    yield Problem(f"{path}.{name}", message)


def _task_problems(path: KeyPath, task: ModelConfig | TowerOptions) -> Iterator[Problem]:
    """Results have names of their own, and metrics a meaning with the task's num_class."""
    metrics = metric_names(task.metrics)
    losses = [result_name(*chosen) if (chosen := loss.chosen("loss")) else None for loss in task.losses]
    if isinstance(task, ModelConfig):
        yield from _repeated((*path, "metrics"), "", metrics)
        yield from _repeated((*path, "losses"), "", losses)
    for index, name in enumerate(metrics):
        if name in losses:
            # A custom metric with the name of a loss would hide it among the results.
            message = f"'{name}' is the name of a loss; choose another"
            yield Problem((*path, "metrics", index, "custom_metric", "name"), message)
    for key in ("metrics", "train_metrics"):
        for index, metric in enumerate(getattr(task, key)):
            name, section = metric.chosen("metric")
            for inner, message in section.class_problems(task.num_class):
                yield Problem((*path, key, index, name, *inner), message)


def _tower_problems(
    path: KeyPath, towers: Sequence[TowerOptions], labels: Sequence[str], weights: Sequence[str]
) -> Iterator[Problem]:
    """Towers name labels, weights and other towers; each must be there."""
    names = [tower.tower_name for tower in towers]
    yield from _repeated(path, "tower_name", names)
    for index, tower in enumerate(towers):
        yield from _task_problems((*path, index), tower)
        for field, known, kind in (
            ("label_name", labels, "label in data_config.label_fields"),
            ("task_space_indicator_label", labels, "label in data_config.label_fields"),
            ("sample_weight_name", weights, "column in data_config.sample_weight_fields"),
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
