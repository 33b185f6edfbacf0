"""Options of the optimizers of embedding tables, which update in the backward pass."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import NonNegativeFloat, PositiveFloat

from penstock.config.section import Refused, Section
from penstock.optim.sections.dense import CustomOptimizer
from penstock.optim.sections.numbers import LearningRate, MomentDecay, WeightDecay
from penstock.optim.sections.schedules import ScheduleOptions


class WeightDecayMode(StrEnum):
    """How weight decay enters the update."""

    NONE = "NONE"
    L2 = "L2"
    DECOUPLE = "DECOUPLE"


class FusedOptions(Section):
    """What every fused optimizer says."""

    lr: LearningRate = 0.002
    """Base learning rate."""

    gradient_clipping: bool = False
    """Clip each gradient value to max_gradient."""

    max_gradient: PositiveFloat = 1.0
    """Largest absolute gradient value."""


class FusedMomentOptions(FusedOptions):
    """What the fused optimizers with two moments say."""

    beta1: MomentDecay = 0.9
    """Decay of the mean of gradients."""

    beta2: MomentDecay = 0.999
    """Decay of the mean of squared gradients."""

    weight_decay: WeightDecay = 0.0
    """Pull of the weights towards 0."""


class FusedSGDOptimizer(FusedOptions):
    """Plain gradient descent."""


class FusedAdagradOptimizer(FusedOptions):
    """Adagrad with one accumulator for each value."""

    initial_accumulator_value: NonNegativeFloat = 0.0
    """Where the accumulators start."""


class FusedRowWiseAdagradOptimizer(FusedOptions):
    """Adagrad with one accumulator for each row."""

    weight_decay: WeightDecay = 0.0
    """Pull of the weights towards 0."""

    weight_decay_mode: WeightDecayMode = WeightDecayMode.NONE
    """NONE, L2 (in the gradient) or DECOUPLE (in the weights)."""


class FusedAdamOptimizer(FusedMomentOptions):
    """Adam."""


class FusedPartialRowWiseAdamOptimizer(FusedMomentOptions):
    """Adam with one second moment for each row."""


class FusedLAMBOptimizer(FusedMomentOptions):
    """LAMB."""


class FusedPartialRowWiseLAMBOptimizer(FusedMomentOptions):
    """LAMB with one second moment for each row."""


class FusedLarsSGDOptimizer(FusedOptions):
    """LARS."""

    momentum: MomentDecay = 0.9
    """Share of the last update that is kept."""

    weight_decay: WeightDecay = 0.0
    """Pull of the weights towards 0."""


class FusedAdadeltaOptimizer(FusedOptions):
    """Adadelta."""

    rho: MomentDecay = 0.95
    """Decay of the means."""

    eps: PositiveFloat = 1e-06
    """Keeps the division finite."""

    weight_decay: WeightDecay = 0.0
    """Pull of the weights towards 0."""


class FusedRMSpropOptimizer(FusedOptions):
    """RMSprop."""

    alpha: MomentDecay = 0.99
    """Decay of the mean of squared gradients."""

    eps: PositiveFloat = 1e-08
    """Keeps the division finite."""

    weight_decay: WeightDecay = 0.0
    """Pull of the weights towards 0."""


class SparseOptimizer(ScheduleOptions):
    """How embedding tables learn."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "optimizer": (
            "sgd_optimizer",
            "adagrad_optimizer",
            "adam_optimizer",
            "lars_sgd_optimizer",
            "lamb_optimizer",
            "partial_rowwise_lamb_optimizer",
            "partial_rowwise_adam_optimizer",
            "rowwise_adagrad_optimizer",
            "adadelta_optimizer",
            "rmsprop_optimizer",
        ),
        **ScheduleOptions.one_of,
    }
    required_one_of: ClassVar[tuple[str, ...]] = ("optimizer",)

    sgd_optimizer: FusedSGDOptimizer | None = None
    adagrad_optimizer: FusedAdagradOptimizer | None = None
    rowwise_adagrad_optimizer: FusedRowWiseAdagradOptimizer | None = None
    adam_optimizer: FusedAdamOptimizer | None = None
    lars_sgd_optimizer: FusedLarsSGDOptimizer | None = None
    lamb_optimizer: FusedLAMBOptimizer | None = None
    partial_rowwise_lamb_optimizer: FusedPartialRowWiseLAMBOptimizer | None = None
    partial_rowwise_adam_optimizer: FusedPartialRowWiseAdamOptimizer | None = None
    adadelta_optimizer: FusedAdadeltaOptimizer | None = None
    rmsprop_optimizer: FusedRMSpropOptimizer | None = None
    custom_optimizer: Annotated[
        CustomOptimizer | None,
        Refused(
            "fused kernels update tables, which nothing in Python can replace; it is for dense_optimizer"
        ),
    ] = None
