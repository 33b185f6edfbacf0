"""Options of learning-rate schedules; n counts completed steps, or epochs with by_epoch."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from penstock.config.registry import CustomPart
from penstock.config.section import Section

_LARGEST_FLOAT32 = 3.4028234e38


def _finite_in_float32(value: float) -> float:
    if value > _LARGEST_FLOAT32:
        raise ValueError(
            f"is {value}, which is infinite in the float32 of parameters; the largest is {_LARGEST_FLOAT32}"
        )
    return value


def refuse_unusable_rate(lr: float, beta1: float = 0.0) -> None:
    """ValueError for a rate that is infinite in float32 once Adam has divided it by 1 - beta1, as at its first step."""
    largest = _LARGEST_FLOAT32 * (1.0 - beta1)
    if lr > largest:
        divided = f" when divided by 1 - beta1 ({1.0 - beta1:.3g})" if beta1 else ""
        raise ValueError(
            f"lr is {lr}, which is infinite in the float32 of parameters{divided}; the largest is {largest:.4g}"
        )


Rate = Annotated[float, Field(ge=0), AfterValidator(_finite_in_float32)]
"""From 0 on, and such that a parameter can still be multiplied by it."""

LearningRate = Annotated[Rate, Field(description="Base learning rate.")]
WeightDecay = Annotated[Rate, Field(description="Pull of the weights towards 0.")]

MomentDecay = Annotated[float, Field(ge=0, lt=1)]
"""The share of a running mean or an update that is kept; with 1 a mean would never learn, an update never fade."""


class ConstantLR(Section):
    """The base learning rate, always."""


class WarmupOptions(Section):
    """A line from a small learning rate to the base one, before the schedule proper begins."""

    warmup_learning_rate: Rate = 0.0
    """Where the line starts."""

    warmup_size: NonNegativeInt = 0
    """Steps or epochs of the line."""

    min_learning_rate: Rate = 0.0
    """The schedule does not go below."""

    by_epoch: bool = False
    """Count epochs instead of steps."""


class ExponentialDecayLR(WarmupOptions):
    """base * decay_factor ** (n / decay_size)."""

    decay_size: PositiveInt
    """Steps or epochs in which the learning rate is multiplied once."""

    decay_factor: Annotated[float, Field(gt=0, le=1)] = 0.95
    """What it is multiplied by."""

    staircase: bool = True
    """In stairs instead of smoothly."""


class ManualStepLR(Section):
    """Learning rates that are written down."""

    schedule_sizes: list[PositiveInt] = []
    """After how many steps or epochs each of the rates begins."""

    learning_rates: list[Rate] = []
    """The rates."""

    warmup: bool = False
    """A line from the base rate to the first of these, over the first size."""

    by_epoch: bool = False
    """Count epochs instead of steps."""

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        sizes, rates = len(self.schedule_sizes), len(self.learning_rates)
        if sizes != rates or not sizes:
            raise ValueError(
                f"schedule_sizes has {sizes} and learning_rates {rates} values; one rate for each size"
            )
        if sorted(set(self.schedule_sizes)) != self.schedule_sizes:
            raise ValueError(f"schedule_sizes must rise; they are {self.schedule_sizes}")
        return self


class CosineAnnealingLR(WarmupOptions):
    """Half a cosine from the base rate to the least one."""

    T_max: PositiveInt
    """Steps or epochs of the half wave."""


class CosineAnnealingWarmRestartsLR(WarmupOptions):
    """Half cosines one after another, each T_mult times as long."""

    T_0: PositiveInt
    """Steps or epochs of the first half wave."""

    T_mult: PositiveInt = 1
    """How many times as long each next one is."""


class MetricMode(StrEnum):
    """Which direction of a metric is better."""

    max = "max"
    min = "min"


class ReduceOnPlateauLR(Section):
    """The rate is multiplied when an evaluation metric stops getting better."""

    metric: str = "auc"
    """Which metric."""

    mode: MetricMode = MetricMode.max
    """Which direction is better."""

    factor: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """What the rate is multiplied by."""

    patience: NonNegativeInt = 3
    """Evaluations without improvement that are waited for."""

    min_delta: NonNegativeFloat = 0.0
    """Less than this is no improvement."""

    min_learning_rate: Rate = 0.0
    """The schedule does not go below."""


def rate_problems(schedule: Section, base: float, base_name: str = "lr") -> Iterator[tuple[str, str]]:
    """A minimum above the base rate, which would lift it, and a warm-up that falls or has no steps: key and message.

    A base of 0 stays 0, whatever the minimum. `base_name` is the key that holds the base rate.
    """
    minimum = getattr(schedule, "min_learning_rate", 0.0)
    cure = "lower one or raise the other"
    if 0.0 < base < minimum:
        problem = f"is {minimum}, above {base_name} {base}, from which the schedule goes down; {cure}"
        yield "min_learning_rate", problem
    start = schedule.warmup_learning_rate if isinstance(schedule, WarmupOptions) else 0.0
    if start and isinstance(schedule, WarmupOptions) and not schedule.warmup_size:
        yield "warmup_learning_rate", f"is {start}, but the warm-up has no steps; set warmup_size"
    elif 0.0 < base < start:
        problem = f"is {start}, above {base_name} {base}, to which a warm-up rises; {cure}"
        yield "warmup_learning_rate", problem


class CustomLR(CustomPart):
    """A custom schedule: called with the options, what is imported gives a function of base and n."""

    by_epoch: bool = False
    """Count epochs instead of steps."""


class ScheduleOptions(Section):
    """Which schedule an optimizer's learning rate follows; none written: constant."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "learning_rate": (
            "constant_learning_rate",
            "exponential_decay_learning_rate",
            "manual_step_learning_rate",
            "cosine_annealing_learning_rate",
            "cosine_annealing_warm_restarts_learning_rate",
            "reduce_on_plateau_learning_rate",
            "custom_learning_rate",
        )
    }

    constant_learning_rate: ConstantLR | None = None
    custom_learning_rate: CustomLR | None = None
    exponential_decay_learning_rate: ExponentialDecayLR | None = None
    manual_step_learning_rate: ManualStepLR | None = None
    cosine_annealing_learning_rate: CosineAnnealingLR | None = None
    cosine_annealing_warm_restarts_learning_rate: CosineAnnealingWarmRestartsLR | None = None
    reduce_on_plateau_learning_rate: ReduceOnPlateauLR | None = None
