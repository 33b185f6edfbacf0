"""Options of losses, and of towers: the parts of a model that stand on one input, or learn one task."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from penstock.config.registry import NamedPart
from penstock.config.section import DropoutRatio, Later, Probability, Section, words
from penstock.metrics.sections import MetricConfig, TrainMetricConfig
from penstock.models.sections.hstu import HSTU
from penstock.models.sections.layers import MLP, AttentionMLP, B2ICapsule

_SEMANTIC_IDS = Later("a loss of semantic ids")

Smoothing = Annotated[float, Field(ge=0, lt=1)]
"""The share of a label that is given away; with 1 nothing of it would be left to learn."""


class BinaryCrossEntropy(Section):
    """For a label of 0 or 1."""

    label_smoothing: Smoothing = 0.0
    """s in y * (1 - s) + s / 2."""


class SoftmaxCrossEntropy(Section):
    """For a label that is one of num_class classes."""

    label_smoothing: Smoothing = 0.0
    """Share of the target spread evenly over the classes."""


class L2Loss(Section):
    """Squared error."""


class JRCLoss(Section):
    """Ranking within a session and calibration together."""

    session_name: Annotated[str, Field(min_length=1)]
    """Feature or column that tells which rows belong to one session."""

    alpha: Probability = 0.5
    """Weight of the calibration part against the ranking part."""


class BinaryFocalLoss(Section):
    """Cross entropy that looks more at rows that are still wrong."""

    gamma: NonNegativeFloat = 2.0
    """How strongly rows that are already right are played down."""

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Weight of positive rows against negative ones, which have 1 - alpha."""


class SidReconLoss(Section):
    """Reconstruction of the item's embedding."""

    recon_type: str = "l2"
    """Distance of the reconstruction."""


class SidCommitmentLoss(Section):
    """Commitment to the chosen codes."""

    latent_weight: list[float] = []
    """Weights of the two directions."""

    commitment_type: str = "l2"
    """Distance of the commitment."""


class SidContrastiveLoss(Section):
    """Pairs of items that belong together."""


class CustomLoss(NamedPart):
    """A custom loss: called with the options, what is imported gives a function of predictions and labels."""

    reads: Annotated[str, words("logits", "y")] = "logits"
    """What it is worked out from: logits (the model then gives probs too) or y."""


class LossConfig(Section):
    """One loss."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "loss": (
            "binary_cross_entropy",
            "softmax_cross_entropy",
            "l2_loss",
            "jrc_loss",
            "binary_focal_loss",
            "custom_loss",
        ),
        "sid_loss": ("recon_loss", "commitment_loss", "contrastive_loss"),
    }

    binary_cross_entropy: BinaryCrossEntropy | None = None
    softmax_cross_entropy: SoftmaxCrossEntropy | None = None
    l2_loss: L2Loss | None = None
    jrc_loss: JRCLoss | None = None
    binary_focal_loss: BinaryFocalLoss | None = None
    custom_loss: CustomLoss | None = None
    recon_loss: Annotated[SidReconLoss | None, _SEMANTIC_IDS] = None
    commitment_loss: Annotated[SidCommitmentLoss | None, _SEMANTIC_IDS] = None
    contrastive_loss: Annotated[SidContrastiveLoss | None, _SEMANTIC_IDS] = None

    @model_validator(mode="after")
    def _has_a_loss(self) -> Self:
        if self.chosen("loss") is None and self.chosen("sid_loss") is None:
            raise ValueError(f"one of {', '.join(self.one_of['loss'])} is required")
        return self


class Tower(Section):
    """An MLP on one feature group."""

    input: str
    """Name of the feature group."""

    mlp: MLP | None = None
    """On the group's vector."""


class HSTUUserTower(Section):
    """A sequential transducer on the user's history."""

    input: str
    """Name of the feature group."""

    hstu: HSTU
    """The encoder."""

    max_seq_len: PositiveInt
    """Longest sequence that is looked at; longer ones are cut."""


class DINTower(Section):
    """Attention over one sequence group."""

    input: str
    """Name of the sequence group."""

    attn_mlp: AttentionMLP


class MultiWindowDINTower(Section):
    """Attention over windows of the history."""

    windows_len: list[PositiveInt] = []
    """Steps in each window, from the newest back."""

    attn_mlp: AttentionMLP


class DATTower(Section):
    """A tower with an augmented vector that stands for the other side."""

    input: str
    """Name of the feature group."""

    augment_input: str
    """Name of the group with the augmented vector's id."""

    mlp: MLP
    """On both together."""


class UserSeqCombineMethod(StrEnum):
    """How the history joins the user's own features."""

    CONCAT = "CONCAT"
    SUM = "SUM"


class MINDUserTower(Section):
    """Several interest vectors from a history."""

    input: str
    """Name of the group with the user's own features."""

    history_input: str
    """Name of the sequence group."""

    user_mlp: MLP
    """On the user's own features."""

    hist_seq_mlp: MLP | None = None
    """On each step of the history."""

    user_seq_combine: UserSeqCombineMethod = UserSeqCombineMethod.SUM
    """How the history joins the user's own features."""

    capsule_config: B2ICapsule
    """From steps to interests."""

    concat_mlp: MLP
    """On each interest joined with the user's features."""


class TaskOptions(Section):
    """What every kind of task says: what it minimises, what it measures, and with which weight."""

    losses: list[LossConfig] = []
    """What is minimised."""

    metrics: list[MetricConfig] = []
    """What evaluation measures."""

    train_metrics: list[TrainMetricConfig] = []
    """What is followed during training."""

    num_class: PositiveInt = 1
    """Number of classes of the label."""

    weight: NonNegativeFloat = 1.0
    """Factor on this task's loss."""


class TowerOptions(TaskOptions):
    """What every task tower says, whatever it stands on."""

    tower_name: Annotated[str, Field(min_length=1)]
    """Name of the task; predictions, losses and metrics end in it."""

    mlp: MLP | None = None
    """The tower itself."""

    task_space_indicator_label: str | None = None
    """Label column that tells whether a row belongs to this task's space."""

    in_task_space_weight: NonNegativeFloat = 1.0
    """Weight of rows inside the task's space."""

    out_task_space_weight: NonNegativeFloat = 1.0
    """Weight of rows outside it."""

    pareto_min_loss_weight: Probability = 0.0
    """Least weight of this task where weights are found by use_pareto_loss_weight."""

    mask_name: str | None = None
    """Column of num_class zeros and ones; classes with 0 cannot be chosen."""


class TaskTower(TowerOptions):
    """One task on the shared input."""

    label_name: str
    """Label column of the task."""

    sample_weight_name: str | None = None
    """Column with the rows' weights for this task."""


class BayesTaskTower(TowerOptions):
    """A task that may depend on other tasks."""

    label_name: str | None = None
    """Label column of the task; a tower without one only feeds others."""

    sample_weight_name: str | None = None
    """Column with the rows' weights for this task."""

    relation_tower_names: list[str] = []
    """Tasks that this one depends on."""

    relation_mlp: MLP | None = None
    """On the task's own vector joined with those of the tasks it depends on."""


class InterventionTaskTower(TowerOptions):
    """A task that other tasks intervene on."""

    label_name: str | None = None
    """Label column of the task; a tower without one only feeds others."""

    intervention_tower_names: list[str] = []
    """Tasks that intervene on this one."""

    low_rank_dim: PositiveInt
    """Rank of the intervention."""

    dropout_ratio: DropoutRatio = 0.1
    """Share of the intervention's activations dropped in training."""


class FusionSubTaskConfig(TaskOptions):
    """One task on the candidates of a sequence."""

    task_name: str
    """Name of the task; predictions, losses and metrics end in it."""

    label_name: str
    """Label column of the task."""

    task_bitmask: NonNegativeInt | None = None
    """Bits of the label column that mean this task."""


class FusionMTLTower(Section):
    """Several tasks on the candidates of a sequence."""

    mlp: MLP | None = None
    """Shared by the tasks."""

    task_configs: list[FusionSubTaskConfig] = []
    """The tasks."""
