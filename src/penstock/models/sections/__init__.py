"""Options of model_config, without torch: what is learned, on which features, and how well it does."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import PositiveInt

from penstock.config.errors import Problem
from penstock.config.registry import result_name
from penstock.config.section import Later, Marker, Refused, Section, one_of
from penstock.metrics.sections import CustomMetric, MetricConfig, MetricSection, TrainMetricConfig
from penstock.models.sections.groups import FeatureGroupConfig
from penstock.models.sections.layers import VariationalDropout
from penstock.models.sections.losses import LossConfig
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
from penstock.models.sections.towers import TowerOptions


class Kernel(StrEnum):
    """Which implementation of the attention kernels to use."""

    TRITON = "TRITON"
    PYTORCH = "PYTORCH"
    CUTLASS = "CUTLASS"


class ModelRow(NamedTuple):
    """One model: its options, and where it is built, as "package.module:attribute"; empty: not available yet."""

    section: type[Section]
    path: str = ""
    refused: bool = False


MODELS: Mapping[str, ModelRow] = {
    "dlrm": ModelRow(DLRM),
    "deepfm": ModelRow(DeepFM, "penstock.models.deepfm:DeepFM"),
    "multi_tower": ModelRow(MultiTower),
    "multi_tower_din": ModelRow(MultiTowerDIN),
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
    "ultra_hstu": ModelRow(UltraHSTU, refused=True),
    "dssm": ModelRow(DSSM),
    "dssm_v2": ModelRow(DSSMV2),
    "dat": ModelRow(DAT),
    "hstu_match": ModelRow(HSTUMatch),
    "mind": ModelRow(MIND),
    "tdm": ModelRow(TDM),
    "rocket_launching": ModelRow(RocketLaunching),
    "sid_rqvae": ModelRow(SidRqvae, refused=True),
    "sid_rqkmeans": ModelRow(SidRqkmeans, refused=True),
}
"""The models of the run file, by the name of their section: `Model(model_config, section, inputs)`."""


_MARKERS: dict[str, Marker] = {
    name: Refused(f"the model {name} is not supported") if row.refused else Later(f"the model {name}")
    for name, row in MODELS.items()
    if not row.path
}


@one_of("model", {name: row.section for name, row in MODELS.items()}, _MARKERS)
class ModelConfig(Section):
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

    def binary_labels(self, label_fields: Sequence[str]) -> tuple[str, ...]:
        """The labels that a loss needs within 0 and 1: of a model with one task the first, of towers their own."""
        towers = self.task_towers
        tasks = [(tower.label_name, tower.losses) for tower in towers if hasattr(tower, "label_name")]
        tasks += [(label, self.losses) for label in label_fields[:1]]
        labels = [label for label, losses in tasks if any(loss.needs_binary_label for loss in losses)]
        return tuple(dict.fromkeys(labels))

    def masks(self) -> dict[str, int]:
        """The mask columns of towers, with their numbers of classes."""
        return {tower.mask_name: tower.num_class for tower in self.task_towers if tower.mask_name is not None}

    def session_names(self) -> tuple[str, ...]:
        """The features or columns that tell sessions apart, for losses that compare rows of one session."""
        of_tasks = [self.losses, *(tower.losses for tower in self.task_towers)]
        jrc_losses = [loss.jrc_loss for losses in of_tasks for loss in losses]
        return tuple(dict.fromkeys(jrc.session_name for jrc in jrc_losses if jrc is not None))

    def loss_names(self) -> list[str]:
        """The losses among the results of an evaluation, with the tower's name behind them."""
        return [name for name, section in self._results() if not isinstance(section, MetricSection)]

    def custom_metric_names(self) -> list[str]:
        return [name for name, section in self._results() if isinstance(section, CustomMetric)]

    def result_names(self) -> list[str]:
        """The names under which an evaluation gives its numbers: metrics and losses."""
        return [name for name, _ in self._results()]

    def _results(self) -> list[tuple[str, Section]]:
        """The name of each result and its section, task by task."""
        tasks: list[tuple[str, Any]] = [("", self)]
        tasks += [(f"_{tower.tower_name}", tower) for tower in self.task_towers]
        return [
            (f"{result_name(*chosen)}{suffix}", chosen[1])
            for suffix, task in tasks
            for chosen in (
                *(metric.chosen("metric") for metric in task.metrics),
                *(loss.chosen("loss") for loss in task.losses),
            )
            if chosen is not None
        ]

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
