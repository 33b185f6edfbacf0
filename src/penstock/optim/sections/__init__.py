"""Options of optimizers: of embedding tables, which update in the backward pass, and of everything else.

A section knows the class that does the work, its arguments, where it can run and what state it keeps.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, model_validator

from penstock.config.errors import Problem
from penstock.config.registry import CustomPart
from penstock.config.section import Ignored, Refused, Section
from penstock.optim.sections.schedules import (
    LearningRate,
    MomentDecay,
    ScheduleOptions,
    WeightDecay,
    refuse_unusable_rate,
)

Beta1 = Annotated[MomentDecay, Field(description="Decay of the mean of gradients.")]
Beta2 = Annotated[MomentDecay, Field(description="Decay of the mean of squared gradients.")]
Rho = Annotated[MomentDecay, Field(description="Decay of the means.")]
Momentum = Annotated[MomentDecay, Field(description="Share of the last update that is kept.")]
Epsilon = Annotated[PositiveFloat, Field(description="Keeps the division finite.")]
Accumulator = Annotated[NonNegativeFloat, Field(description="Where the accumulators start.")]
Fused = Annotated[bool, Ignored("the implementation is chosen by the device")]


class DenseOptions(Section):
    """What every dense optimizer says."""

    torch_class: ClassVar[str]
    """The name of its class in torch.optim."""

    lr: LearningRate = 0.002
    weight_decay: WeightDecay = 0.0

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of the class."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "fused"}
        if "beta1" in given:
            given["betas"] = given.pop("beta1"), given.pop("beta2")
        return given


class SGDOptimizer(DenseOptions):
    """Gradient descent with momentum."""

    torch_class = "SGD"

    momentum: Momentum = 0.9
    dampening: MomentDecay = 0.0
    """Share of the gradient that does not enter the momentum."""

    nesterov: bool = False
    """Look ahead along the momentum."""

    fused: Fused = False
    """Of the old schema."""

    @model_validator(mode="after")
    def _nesterov_looks_along_the_momentum(self) -> Self:
        if self.nesterov and (not self.momentum or self.dampening):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        return self


class AdagradOptimizer(DenseOptions):
    """Adagrad."""

    torch_class = "Adagrad"

    initial_accumulator_value: Accumulator = 0.0
    eps: Epsilon = 1e-10
    fused: Fused = False
    """Of the old schema."""


class AdamOptions(DenseOptions):
    """What Adam and AdamW say."""

    beta1: Beta1 = 0.9
    beta2: Beta2 = 0.999
    eps: Epsilon = 1e-08
    amsgrad: bool = False
    """Divide by the largest second moment so far."""

    fused: Fused = False
    """Of the old schema."""

    @model_validator(mode="after")
    def _first_step_is_finite(self) -> Self:
        refuse_unusable_rate(self.lr, self.beta1)
        return self


class AdamOptimizer(AdamOptions):
    """Adam."""

    torch_class = "Adam"


class AdamWOptimizer(AdamOptions):
    """Adam with weight decay apart from the gradient."""

    torch_class = "AdamW"


class AdadeltaOptimizer(DenseOptions):
    """Adadelta."""

    torch_class = "Adadelta"

    rho: Rho = 0.95
    eps: Epsilon = 1e-06


class RMSpropOptimizer(DenseOptions):
    """RMSprop."""

    torch_class = "RMSprop"

    alpha: Beta2 = 0.99
    eps: Epsilon = 1e-08


class CustomOptimizer(CustomPart):
    """A custom `torch.optim.Optimizer`, made with parameters, lr and its options."""

    lr: LearningRate = 0.002


DENSE_OPTIMIZERS: Mapping[str, type[Section]] = {
    "sgd_optimizer": SGDOptimizer,
    "adagrad_optimizer": AdagradOptimizer,
    "adam_optimizer": AdamOptimizer,
    "adamw_optimizer": AdamWOptimizer,
    "adadelta_optimizer": AdadeltaOptimizer,
    "rmsprop_optimizer": RMSpropOptimizer,
    "custom_optimizer": CustomOptimizer,
}
"""The optimizers of everything that is not an embedding table, by the name of their section."""


class DenseOptimizerOptions(ScheduleOptions, group="optimizer", kinds=DENSE_OPTIMIZERS):
    """One dense optimizer and its schedule."""


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


class WeightDecayMode(StrEnum):
    """How weight decay enters the update."""

    NONE = "NONE"
    L2 = "L2"
    DECOUPLE = "DECOUPLE"


class FusedOptions(Section):
    """What every fused optimizer says."""

    kernel: ClassVar[str] = ""
    """The name in torchrec.optim of what the kernel does; empty: no kernel updates tables this way."""

    on_cpu: ClassVar[bool] = True
    """Whether it can run on CPU too."""

    instead: ClassVar[str] = ""
    """What comes nearest where it cannot run."""

    state_per_weight: ClassVar[float | None] = None
    """Bytes of state beside each byte of a table; None: one number for each row instead."""

    lr: LearningRate = 0.002
    gradient_clipping: bool = False
    """Clip each gradient value to max_gradient."""

    max_gradient: PositiveFloat = 1.0
    """Largest absolute gradient value."""

    def kernel_settings(self) -> dict[str, Any]:
        """What the kernel is given beside rate and clipping."""
        own = [name for name in type(self).model_fields if name not in FusedOptions.model_fields]
        return {name: getattr(self, name) for name in own}

    def device_problems(self, device_type: str) -> Iterator[tuple[str, str]]:
        """Why it cannot train tables on a kind of device ('cpu', 'cuda'): a key below it, and what is wrong."""
        if not self.kernel:
            yield "", f"no kernel updates embedding tables this way; use {self.instead}"
        elif device_type == "cpu" and not self.on_cpu:
            yield "", f"has a kernel on GPU alone; on CPU use {self.instead}"


class FusedMomentOptions(FusedOptions):
    """What the fused optimizers with two moments say."""

    beta1: Beta1 = 0.9
    beta2: Beta2 = 0.999
    weight_decay: WeightDecay = 0.0


class FusedSGDOptimizer(FusedOptions):
    """Plain gradient descent."""

    kernel, state_per_weight = "SGD", 0.0


class FusedAdagradOptimizer(FusedOptions):
    """Adagrad with one accumulator for each value."""

    kernel, state_per_weight = "Adagrad", 1.0

    initial_accumulator_value: Accumulator = 0.0

    def kernel_settings(self) -> dict[str, Any]:
        return {}  # the kernel starts accumulators at 0; others are filled after it is built


class FusedRowWiseAdagradOptimizer(FusedOptions):
    """Adagrad with one accumulator for each row."""

    kernel = "RowWiseAdagrad"

    weight_decay: WeightDecay = 0.0
    weight_decay_mode: WeightDecayMode = WeightDecayMode.NONE
    """NONE, L2 (in the gradient) or DECOUPLE (in the weights)."""

    def kernel_settings(self) -> dict[str, Any]:
        return super().kernel_settings() if self.weight_decay else {}

    def device_problems(self, device_type: str) -> Iterator[tuple[str, str]]:
        if self.weight_decay and device_type == "cpu":
            message = f"is {self.weight_decay}; the CPU kernel ignores it; remove it, or use adam_optimizer"
            yield "weight_decay", message
        elif self.weight_decay and self.weight_decay_mode is WeightDecayMode.NONE:
            message = "but weight_decay_mode NONE ignores it; set L2 or DECOUPLE, or remove it"
            yield "weight_decay", f"is {self.weight_decay}, {message}"


class FusedAdamOptimizer(FusedMomentOptions):
    """Adam."""

    kernel, state_per_weight = "Adam", 2.0


class FusedPartialRowWiseAdamOptimizer(FusedMomentOptions):
    """Adam with one second moment for each row."""

    kernel, on_cpu, instead, state_per_weight = "PartialRowWiseAdam", False, "adam_optimizer", 1.25


class FusedLAMBOptimizer(FusedMomentOptions):
    """LAMB."""

    kernel, on_cpu, instead, state_per_weight = "LAMB", False, "adam_optimizer", 2.0


class FusedPartialRowWiseLAMBOptimizer(FusedMomentOptions):
    """LAMB with one second moment for each row."""

    kernel, on_cpu, instead, state_per_weight = "PartialRowWiseLAMB", False, "adam_optimizer", 1.25


class FusedLarsSGDOptimizer(FusedOptions):
    """LARS."""

    kernel, on_cpu, instead, state_per_weight = "LarsSGD", False, "sgd_optimizer", 1.0

    momentum: Momentum = 0.9
    weight_decay: WeightDecay = 0.0


class FusedAdadeltaOptimizer(FusedOptions):
    """Adadelta."""

    instead = "adagrad_optimizer"

    rho: Rho = 0.95
    eps: Epsilon = 1e-06
    weight_decay: WeightDecay = 0.0


class FusedRMSpropOptimizer(FusedOptions):
    """RMSprop."""

    instead = "adam_optimizer"

    alpha: Beta2 = 0.99
    eps: Epsilon = 1e-08
    weight_decay: WeightDecay = 0.0


SPARSE_OPTIMIZERS: Mapping[str, type[Section]] = {
    "sgd_optimizer": FusedSGDOptimizer,
    "adagrad_optimizer": FusedAdagradOptimizer,
    "adam_optimizer": FusedAdamOptimizer,
    "lars_sgd_optimizer": FusedLarsSGDOptimizer,
    "lamb_optimizer": FusedLAMBOptimizer,
    "partial_rowwise_lamb_optimizer": FusedPartialRowWiseLAMBOptimizer,
    "partial_rowwise_adam_optimizer": FusedPartialRowWiseAdamOptimizer,
    "rowwise_adagrad_optimizer": FusedRowWiseAdagradOptimizer,
    "adadelta_optimizer": FusedAdadeltaOptimizer,
    "rmsprop_optimizer": FusedRMSpropOptimizer,
    "custom_optimizer": CustomOptimizer,
}
"""The optimizers of embedding tables, by the name of their section."""

_REFUSED = {
    "custom_optimizer": Refused(
        "fused kernels update tables, which nothing in Python can replace; it is for dense_optimizer"
    )
}


class SparseOptimizer(
    ScheduleOptions, group="optimizer", kinds=SPARSE_OPTIMIZERS, markers=_REFUSED, outside=_REFUSED
):
    """How embedding tables learn."""

    def problems(self, device_type: str) -> Iterator[Problem]:
        """Why tables cannot be trained so on this kind of device ('cpu', 'cuda'), and what to use instead."""
        name, section = self.chosen("optimizer") or ("", None)
        assert section is not None  # a section without an optimizer is refused when it is made
        for key, message in section.device_problems(device_type):
            yield Problem(".".join(filter(None, ("train_config.sparse_optimizer", name, key))), message)
