"""What a model holds of one row while it computes, counted before anything is allocated.

Counted are tensors whose size grows with the rows: 32-bit floats, as wide as a layer. Every layer says its own part, a
model joins them.
"""

from typing import NamedTuple

from torch import nn

FLOAT_BYTES = 4
KEEPS_OUTPUT = (nn.ReLU, nn.Sigmoid, nn.Tanh, nn.Identity)
"""Activations whose gradient follows from their output, so that their input is let go."""
MASK_FLOATS = 0.25
"""A byte for each value that dropout may take out."""


class RowUse(NamedTuple):
    """Floats of a row."""

    kept: float
    """In training what stays until the gradients are found; else what the next layer reads."""
    passing: float
    """The most that is there beside it for a moment: values between two layers, gradients between two layers."""


def one_after_another(*parts: RowUse) -> RowUse:
    """Of parts that are worked out one after the other."""
    return RowUse(sum(part.kept for part in parts), max((part.passing for part in parts), default=0))


def layer_use(input_dim: int, layer: nn.Sequential, width: int, training: bool) -> RowUse:
    """A linear layer with what follows it: normalisation, activation, dropout."""
    if not training:
        return RowUse(width, input_dim + 2 * width)
    kept = 0.0
    modules = list(layer)
    for module, following in zip(modules, [*modules[1:], None], strict=True):
        if isinstance(module, nn.Dropout):
            kept += MASK_FLOATS * width
        # An activation gives what the next layer keeps as its input; what stands before it is kept where its gradient,
        # or that of a normalisation, is worked out from it.
        if not isinstance(following, KEEPS_OUTPUT):
            kept += width
    return RowUse(kept, max(input_dim + width, 2 * width))
