"""Options of the optimizers of everything that is not an embedding table."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, model_validator

from penstock.config.registry import CustomPart
from penstock.config.section import Ignored, Section
from penstock.optim.sections.numbers import LearningRate, MomentDecay, WeightDecay, refuse_unusable_rate
from penstock.optim.sections.schedules import ScheduleOptions

_FUSED = Ignored("the implementation is chosen by the device")


class DenseOptions(Section):
    """What every dense optimizer says."""

    lr: LearningRate = 0.002
    """Base learning rate."""

    weight_decay: WeightDecay = 0.0
    """Pull of the weights towards 0."""


class SGDOptimizer(DenseOptions):
    """Gradient descent with momentum."""

    momentum: MomentDecay = 0.9
    """Share of the last update that is kept."""

    dampening: MomentDecay = 0.0
    """Share of the gradient that does not enter the momentum."""

    nesterov: bool = False
    """Look ahead along the momentum."""

    fused: Annotated[bool, _FUSED] = False
    """Of the old schema."""

    @model_validator(mode="after")
    def _nesterov_looks_along_the_momentum(self) -> Self:
        if self.nesterov and (not self.momentum or self.dampening):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        return self


class AdagradOptimizer(DenseOptions):
    """Adagrad."""

    initial_accumulator_value: NonNegativeFloat = 0.0
    """Where the accumulators start."""

    eps: PositiveFloat = 1e-10
    """Keeps the division finite."""

    fused: Annotated[bool, _FUSED] = False
    """Of the old schema."""


class AdamOptions(DenseOptions):
    """What Adam and AdamW say."""

    beta1: MomentDecay = 0.9
    """Decay of the mean of gradients."""

    beta2: MomentDecay = 0.999
    """Decay of the mean of squared gradients."""

    eps: PositiveFloat = 1e-08
    """Keeps the division finite."""

    amsgrad: bool = False
    """Divide by the largest second moment so far."""

    fused: Annotated[bool, _FUSED] = False
    """Of the old schema."""

    @model_validator(mode="after")
    def _first_step_is_finite(self) -> Self:
        refuse_unusable_rate(self.lr, self.beta1)
        return self


class AdamOptimizer(AdamOptions):
    """Adam."""


class AdamWOptimizer(AdamOptions):
    """Adam with weight decay apart from the gradient."""


class AdadeltaOptimizer(DenseOptions):
    """Adadelta."""

    rho: MomentDecay = 0.95
    """Decay of the means."""

    eps: PositiveFloat = 1e-06
    """Keeps the division finite."""


class RMSpropOptimizer(DenseOptions):
    """RMSprop."""

    alpha: MomentDecay = 0.99
    """Decay of the mean of squared gradients."""

    eps: PositiveFloat = 1e-08
    """Keeps the division finite."""


class CustomOptimizer(CustomPart):
    """A `torch.optim.Optimizer` of one's own, made with parameters, lr and its options."""

    lr: LearningRate = 0.002
    """Base learning rate."""


class DenseOptimizerOptions(ScheduleOptions):
    """One dense optimizer and its schedule."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "optimizer": (
            "sgd_optimizer",
            "adagrad_optimizer",
            "adam_optimizer",
            "adamw_optimizer",
            "adadelta_optimizer",
            "rmsprop_optimizer",
            "custom_optimizer",
        ),
        **ScheduleOptions.one_of,
    }
    required_one_of: ClassVar[tuple[str, ...]] = ("optimizer",)

    sgd_optimizer: SGDOptimizer | None = None
    adagrad_optimizer: AdagradOptimizer | None = None
    adam_optimizer: AdamOptimizer | None = None
    adamw_optimizer: AdamWOptimizer | None = None
    adadelta_optimizer: AdadeltaOptimizer | None = None
    rmsprop_optimizer: RMSpropOptimizer | None = None
    custom_optimizer: CustomOptimizer | None = None


def _pattern(text: str) -> str:
    if not text:
        raise ValueError("is empty; it must match the whole name of a parameter, such as '.*deep.*'")
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is '{text}', which is no regular expression: {error}") from error
    return text


class PartOptimizer(DenseOptimizerOptions):
    """Another optimizer for some of the parameters."""

    regex_pattern: Annotated[str, AfterValidator(_pattern)]
    """Parameters whose whole name matches belong to this part; the first match wins."""


class EMAConfig(Section):
    """A running mean of the parameters, used in evaluation and export."""

    decay: Annotated[float, Field(ge=0, lt=1)] = 0.999
    """How much of the mean is kept at each step; with 1 it would never move."""


class DenseOptimizer(DenseOptimizerOptions):
    """How everything that is not an embedding table learns."""

    part_optimizers: list[PartOptimizer] = []
    """Other optimizers for some of the parameters."""

    ema: EMAConfig | None = None
    """A running mean of the parameters."""
