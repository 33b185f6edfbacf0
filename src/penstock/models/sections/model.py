"""model_config: what is learned, on which features, and how well it does."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import PositiveInt

from penstock.config.custom import result_name
from penstock.config.errors import Problem
from penstock.config.markers import Later, Refused
from penstock.config.section import Section
from penstock.models.sections.groups import FeatureGroupConfig
from penstock.models.sections.layers import VariationalDropout
from penstock.models.sections.losses import LossConfig
from penstock.models.sections.match import DAT, DSSM, DSSMV2, MIND, TDM, HSTUMatch
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
from penstock.models.sections.semantic_ids import SidRqkmeans, SidRqvae
from penstock.models.sections.towers import TowerOptions
from penstock.tensors.sections.metrics import MetricConfig, TrainMetricConfig


class Kernel(StrEnum):
    """Which implementation of the attention kernels to use."""

    TRITON = "TRITON"
    PYTORCH = "PYTORCH"
    CUTLASS = "CUTLASS"


class ModelConfig(Section):
    """What is learned, on which features, and how well it does."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": (
            "dlrm",
            "deepfm",
            "multi_tower",
            "multi_tower_din",
            "mask_net",
            "wide_and_deep",
            "dcn_v1",
            "dcn_v2",
            "xdeepfm",
            "wukong",
            "simple_multi_task",
            "mmoe",
            "dbmtl",
            "ple",
            "dc2vr",
            "dlrm_hstu",
            "pepnet",
            "ultra_hstu",
            "dssm",
            "dssm_v2",
            "dat",
            "hstu_match",
            "mind",
            "tdm",
            "rocket_launching",
            "sid_rqvae",
            "sid_rqkmeans",
        )
    }
    required_one_of: ClassVar[tuple[str, ...]] = ("model",)

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

    dlrm: Annotated[DLRM | None, Later("the model dlrm")] = None
    deepfm: DeepFM | None = None
    multi_tower: Annotated[MultiTower | None, Later("the model multi_tower")] = None
    multi_tower_din: Annotated[MultiTowerDIN | None, Later("the model multi_tower_din")] = None
    mask_net: Annotated[MaskNet | None, Later("the model mask_net")] = None
    wide_and_deep: WideAndDeep | None = None
    dcn_v1: Annotated[DCNV1 | None, Later("the model dcn_v1")] = None
    dcn_v2: Annotated[DCNV2 | None, Later("the model dcn_v2")] = None
    xdeepfm: Annotated[xDeepFM | None, Later("the model xdeepfm")] = None
    wukong: Annotated[WuKong | None, Later("the model wukong")] = None
    simple_multi_task: SimpleMultiTask | None = None
    mmoe: MMoE | None = None
    dbmtl: Annotated[DBMTL | None, Later("the model dbmtl")] = None
    ple: Annotated[PLE | None, Later("the model ple")] = None
    dc2vr: Annotated[DC2VR | None, Later("the model dc2vr")] = None
    dlrm_hstu: Annotated[DlrmHSTU | None, Later("the model dlrm_hstu")] = None
    pepnet: Annotated[PEPNet | None, Later("the model pepnet")] = None
    ultra_hstu: Annotated[UltraHSTU | None, Refused("the model ultra_hstu is not supported")] = None
    dssm: Annotated[DSSM | None, Later("the model dssm")] = None
    dssm_v2: Annotated[DSSMV2 | None, Later("the model dssm_v2")] = None
    dat: Annotated[DAT | None, Later("the model dat")] = None
    hstu_match: Annotated[HSTUMatch | None, Later("the model hstu_match")] = None
    mind: Annotated[MIND | None, Later("the model mind")] = None
    tdm: Annotated[TDM | None, Later("the model tdm")] = None
    rocket_launching: Annotated[RocketLaunching | None, Later("the model rocket_launching")] = None
    sid_rqvae: Annotated[SidRqvae | None, Refused("the model sid_rqvae is not supported")] = None
    sid_rqkmeans: Annotated[SidRqkmeans | None, Refused("the model sid_rqkmeans is not supported")] = None

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
        return [
            f"{result_name(*chosen)}{suffix}"
            for suffix, task in self._tasks()
            for loss in task.losses
            if (chosen := loss.chosen("loss")) is not None
        ]

    def custom_metric_names(self) -> list[str]:
        """The custom metrics among the results of an evaluation."""
        return [
            f"{metric.custom_metric.result_name}{suffix}"
            for suffix, task in self._tasks()
            for metric in task.metrics
            if metric.custom_metric is not None
        ]

    def result_names(self) -> list[str]:
        """The names under which an evaluation gives its numbers: metrics and losses."""
        return [
            f"{result_name(*chosen)}{suffix}"
            for suffix, task in self._tasks()
            for chosen in (
                *(metric.chosen("metric") for metric in task.metrics),
                *(loss.chosen("loss") for loss in task.losses),
            )
            if chosen is not None
        ]

    def _tasks(self) -> "list[tuple[str, ModelConfig | TowerOptions]]":
        """With what stands behind the names of their results."""
        return [("", self), *((f"_{tower.tower_name}", tower) for tower in self.task_towers)]

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
