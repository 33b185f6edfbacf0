"""Scaled losses: gradients too small for FP16 would be 0, so they are computed larger and divided before they are used.

How large is found by trying. A scale at which a gradient is infinite is lowered, and that batch is passed over; after
many batches without that, it is raised. Embedding tables update themselves as soon as the backward pass reaches them:
they would take the gradients as they are, scaled or infinite. So the pass ends at what was looked up, all gradients
are looked at and divided, and only then does it go on into the tables.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import nn

from penstock.loops.sections import GradScaler
from penstock.models.model import Model
from penstock.optim.table_kernels import table_kernels
from penstock.runtime.world import State


class LossScaling:
    """Takes the gradients of a loss in FP16, and moves parameters only where all of them are finite."""

    def __init__(
        self, section: GradScaler, model: nn.Module, parameters: Iterable[nn.Parameter], device: torch.device
    ) -> None:
        """`model` is sharded; `parameters` are those that an ordinary optimizer moves."""
        self._scaler = torch.amp.GradScaler(device.type, **section.model_dump())
        self._parameters = list(parameters)
        self._looked_up = LookedUp(model)
        self._models = [module for module in model.modules() if isinstance(module, Model)]
        self._tell_models()

    @property
    def scale(self) -> float:
        """What the next loss is multiplied by."""
        return float(self._scaler.get_scale())

    def learn(self, loss: torch.Tensor, move: Callable[[], None]) -> bool:
        """Move tables, then call `move` for everything else, with true gradients; or neither, which gives False."""
        torch.autograd.backward(self._scaler.scale(loss))
        update = _Update([*self._parameters, *self._looked_up.values()], lambda: self._update(move))
        self._scaler.step(cast(torch.optim.Optimizer, update))
        self._scaler.update()
        self._looked_up.forget()
        self._tell_models()
        return update.done

    def state_dict(self) -> State:
        """The scale, and how many steps it has held."""
        state = self._scaler.state_dict()
        return {"scale": state["scale"], "num_steps": state["_growth_tracker"]}

    def load_state_dict(self, state: State) -> None:
        """Go on from there; how it grows and falls is as the run file says now."""
        found = {"scale": state["scale"], "_growth_tracker": state["num_steps"]}
        self._scaler.load_state_dict(self._scaler.state_dict() | found)
        self._tell_models()

    def _update(self, move: Callable[[], None]) -> None:
        self._looked_up.pass_on()
        move()

    def _tell_models(self) -> None:
        for model in self._models:
            model.gradient_scale = self.scale


class LookedUp:
    """What a forward pass looked up in tables, where the backward pass ends until it is passed on."""

    def __init__(self, model: nn.Module) -> None:
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        model.register_forward_pre_hook(lambda *_: self.forget())
        for kernel, _ in table_kernels(model):
            kernel.register_forward_hook(self._cut)

    def values(self) -> list[torch.Tensor]:
        """What the model saw: after the backward pass, with gradients."""
        return [seen for _, seen in self._pairs]

    def pass_on(self) -> None:
        """Let the backward pass go on into the tables, with the gradients that `values` have now."""
        reached = [(found, seen.grad) for found, seen in self._pairs if seen.grad is not None]
        if reached:
            torch.autograd.backward([found for found, _ in reached], [gradient for _, gradient in reached])

    def forget(self) -> None:
        """Let go of the last forward pass."""
        self._pairs.clear()

    def _cut(self, kernel: nn.Module, asked: tuple[Any, ...], found: torch.Tensor) -> torch.Tensor | None:
        if not found.requires_grad:
            return None
        seen = found.detach().requires_grad_()
        self._pairs.append((found, seen))
        return seen


class _Update:
    """What GradScaler needs of an optimizer: gradients to look at and divide, and what to do if all are finite."""

    def __init__(self, tensors: list[torch.Tensor], move: Callable[[], None]) -> None:
        self.param_groups = [{"params": tensors}]
        self.done = False
        self._move = move

    def step(self) -> None:
        self._move()
        self.done = True
