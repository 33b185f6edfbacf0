"""Numbers that optimizers take."""

from typing import Annotated

from pydantic import AfterValidator, Field

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


LearningRate = Annotated[float, Field(ge=0), AfterValidator(_finite_in_float32)]
"""A rate from 0 on that a parameter can still be multiplied by."""

WeightDecay = Annotated[float, Field(ge=0), AfterValidator(_finite_in_float32)]
"""A pull towards 0, from 0 on, that a parameter can still be multiplied by."""

MomentDecay = Annotated[float, Field(ge=0, lt=1)]
"""The share of a running mean or an update that is kept; with 1 a mean would never learn, an update never fade."""
