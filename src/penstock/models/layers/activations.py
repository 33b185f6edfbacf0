"""Activations by the name that a run file gives them."""

from torch import nn

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint

ACTIVATIONS = (
    "ELU",
    "GELU",
    "Hardswish",
    "Identity",
    "LeakyReLU",
    "Mish",
    "PReLU",
    "ReLU",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Tanh",
)
"""The modules of torch.nn that a run file may name."""


def build_activation(name: str, path: str) -> nn.Module:
    """A new activation: `nn.ReLU`, `torch.nn.ReLU` and `ReLU` are the same; empty is none."""
    short_name = name.removeprefix("torch.").removeprefix("nn.") or "Identity"
    if short_name not in ACTIVATIONS:
        raise ConfigError.at(path, f"'{name}' is not available; {hint(short_name, ACTIVATIONS)}")
    activation: nn.Module = getattr(nn, short_name)()
    return activation
