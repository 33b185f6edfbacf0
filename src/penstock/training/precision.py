"""What a model computes in (float32 or 16 bits), scaled losses, clipped gradients."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.models.model import Model
from penstock.optim.sparse import table_kernels
from penstock.runtime.world import State
from penstock.training.sections import GradClipping, GradScaler

PRECISIONS = {"BF16": torch.bfloat16, "FP16": torch.float16}
"""What autocast computes in, by the name in the run file."""

_CURES = {
    torch.bfloat16: "leave it out, or set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16",
    torch.float16: "leave it out, or use BF16",
}
"""What to do where a processor has no arithmetic for a precision, though torch thinks so."""


@contextmanager
def computing_in(precision: torch.dtype, device: torch.device) -> Iterator[None]:
    """Autocast; what a processor cannot do in this precision is reported as such."""
    try:
        with torch.autocast(device.type, precision):
            yield
    except RuntimeError as error:
        if "could not create a primitive" not in str(error):
            raise
        name = next(name for name, dtype in PRECISIONS.items() if dtype is precision)
        raise ConfigError.at(
            "train_config.mixed_precision",
            f"torch cannot compute this model in {name} on this processor; {_CURES[precision]}",
        ) from error


class LossScaling:
    """Takes the gradients of a loss in FP16, which are to be used only where all of them are finite.

    The backward pass ends at what the forward pass looked up in tables; only true gradients are passed on to these.
    """

    def __init__(
        self, section: GradScaler, model: nn.Module, parameters: Iterable[nn.Parameter], device: torch.device
    ) -> None:
        """`model` is sharded; `parameters` are those that an ordinary optimizer moves."""
        self._scaler = torch.amp.GradScaler(device.type, **section.model_dump())
        self._parameters = list(parameters)
        self._looked_up: list[tuple[torch.Tensor, torch.Tensor]] = []
        """What tables gave, and what the model saw of it."""
        self._models = [module for module in model.modules() if isinstance(module, Model)]
        model.register_forward_pre_hook(lambda *_: self._looked_up.clear())
        for kernel, _ in table_kernels(model):
            kernel.register_forward_hook(self._cut)
        self._show_scale()

    @property
    def scale(self) -> float:
        return float(self._scaler.get_scale())

    def backward(self, loss: torch.Tensor) -> bool:
        """Take true gradients and move the tables; or, where a gradient is not finite, neither: False."""
        torch.autograd.backward(self._scaler.scale(loss))
        moved = []

        def move_tables() -> None:
            reached = [(found, seen.grad) for found, seen in self._looked_up if seen.grad is not None]
            if reached:
                torch.autograd.backward(
                    [found for found, _ in reached], [gradient for _, gradient in reached]
                )
            moved.append(True)

        # What GradScaler needs of an optimizer: gradients to look at and divide, and what to do if all are finite.
        tensors = [*self._parameters, *(seen for _, seen in self._looked_up)]
        update = SimpleNamespace(param_groups=[{"params": tensors}], step=move_tables)
        self._scaler.step(cast(torch.optim.Optimizer, update))
        self._scaler.update()
        self._looked_up.clear()
        self._show_scale()
        return bool(moved)

    def state_dict(self) -> State:
        state = self._scaler.state_dict()
        return {"scale": state["scale"], "num_steps": state["_growth_tracker"]}

    def load_state_dict(self, state: State) -> None:
        """Go on from there; how it grows and falls is as the run file says now."""
        found = {"scale": state["scale"], "_growth_tracker": state["num_steps"]}
        self._scaler.load_state_dict(self._scaler.state_dict() | found)
        self._show_scale()

    def _show_scale(self) -> None:
        for model in self._models:
            model.gradient_scale = self.scale

    def _cut(self, kernel: nn.Module, asked: tuple[Any, ...], found: torch.Tensor) -> torch.Tensor | None:
        if not found.requires_grad:
            return None
        seen = found.detach().requires_grad_()
        self._looked_up.append((found, seen))
        return seen


def gradient_clipper(
    section: GradClipping, parameters: Iterable[torch.nn.Parameter]
) -> Callable[[], object] | None:
    """What to call between the backward pass and the update; None where nothing was asked for."""
    kept = list(parameters)
    if section.clipping_type == "none":
        return None
    if section.clipping_type == "value":
        return partial(torch.nn.utils.clip_grad_value_, kept, section.max_gradient)
    return partial(torch.nn.utils.clip_grad_norm_, kept, section.max_gradient, section.norm_type)
