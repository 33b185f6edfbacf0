"""Keeps the gradients of dense parameters in bounds.

Embedding tables update in the backward pass, so that their gradients never exist as a whole: of these the kernel
cuts each number, with `gradient_clipping` and `max_gradient` of the sparse optimizer.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch

from penstock.loops.sections import GradClipping


def gradient_clipper(
    section: GradClipping | None, parameters: Iterable[torch.nn.Parameter]
) -> Callable[[], None]:
    """What to call between the backward pass and the update; it does nothing where nothing was asked for."""
    kept = list(parameters)
    if section is None or section.clipping_type == "none":
        return _nothing
    if section.clipping_type == "value":
        return partial(torch.nn.utils.clip_grad_value_, kept, section.max_gradient)
    return partial(_clip_norm, kept, section.max_gradient, section.norm_type)


def _nothing() -> None:
    """Gradients stay as they are."""


def _clip_norm(parameters: list[torch.nn.Parameter], max_gradient: float, norm_type: float) -> None:
    torch.nn.utils.clip_grad_norm_(parameters, max_gradient, norm_type)
