"""Options of the losses."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, NonNegativeFloat, model_validator

from penstock.config.registry import NamedPart
from penstock.config.section import Probability, Refused, Section, words

_SEMANTIC_IDS = Refused("semantic-id losses are not supported")

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
    """A loss of one's own: called with its options, the place gives a function of predictions and labels of B rows."""

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
