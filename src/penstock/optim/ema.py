"""A running mean of the dense parameters, which scores steadier than the parameters themselves."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

COUNT = "num_updates"


class DenseAverages:
    """mean = decay * mean + (1 - decay) * parameter after every step; it starts as the parameters after the first.

    Embedding tables are left out: most of their rows do not move in a step. So are the running statistics of batch
    normalisation, which are means already.
    """

    def __init__(self, parameters: Mapping[str, torch.nn.Parameter], decay: float = 0.999) -> None:
        self._parameters: list[torch.Tensor] = list(parameters.values())
        self._decay = decay
        self._means = [parameter.detach().clone() for parameter in self._parameters]
        self._count = torch.zeros((), dtype=torch.int64)
        self._names = list(parameters)

    @torch.no_grad()
    def update(self) -> None:
        """A step is done."""
        if self._parameters:
            share = 1 - self._decay if self._count else 1.0
            torch._foreach_lerp_(self._means, self._parameters, share)
        self._count += 1

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the parameters hold their means; before the first step there are none, and nothing changes."""
        if not self._count:
            yield
            return
        kept = [parameter.detach().clone() for parameter in self._parameters]
        self._set(self._means)
        try:
            yield
        finally:
            self._set(kept)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The means by parameter name and the count of updates: the tensors in use, not copies."""
        return {**dict(zip(self._names, self._means, strict=True)), COUNT: self._count}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go on from there."""
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])

    @torch.no_grad()
    def _set(self, values: list[torch.Tensor]) -> None:
        for parameter, value in zip(self._parameters, values, strict=True):
            parameter.copy_(value)
