"""Everything that training changes in a model and its optimizers, by name, for checkpoints.

Names are `model.<parameter>`, `sparse_optimizer.<parameter>.<state>` and
`dense_optimizer.<parameter>.<state>`, the same on any number of ranks and for sharded and unsharded models.
The tensors are those in use, not copies: loading into them is loading into the model.
"""

from collections.abc import Collection, Iterator

import torch
from torch import nn
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.keyed import KeyedOptimizer

from penstock.checkpoint import Checkpoint, Difference

_MODEL, _SPARSE, _DENSE = "model.", "sparse_optimizer.", "dense_optimizer."


def model_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers, of a sharded model or of an ordinary one."""
    return {f"{_MODEL}{name}": tensor for name, tensor in model.state_dict().items()}


def training_state(
    model: DistributedModelParallel, dense_optimizer: KeyedOptimizer
) -> dict[str, torch.Tensor]:
    """Model, state of the fused optimizer of its tables, and state of the optimizer of everything else."""
    state = model_state(model)
    state.update(_optimizer_state(_SPARSE, model.fused_optimizer))
    state.update(_optimizer_state(_DENSE, dense_optimizer))
    return state


def load_training_state(
    checkpoint: Checkpoint, model: DistributedModelParallel, dense_optimizer: KeyedOptimizer
) -> None:
    """Bring model and optimizers to where they were; a checkpoint that does not fit is refused by name."""
    dense_names = (name.removeprefix(_DENSE) for name in checkpoint.names if name.startswith(_DENSE))
    _create_state(dense_optimizer, {name.rpartition(".")[0] for name in dense_names})
    checkpoint.load_tensors(training_state(model, dense_optimizer))


def load_model_state(checkpoint: Checkpoint, model: nn.Module) -> Difference:
    """Bring only the model, sharded or not, to where it was.

    What only one side has is not loaded and is the caller's to judge; optimizer state is no difference here.
    """
    difference = checkpoint.load_tensors(model_state(model), strict=False)
    extra = tuple(name for name in difference.extra if name.startswith(_MODEL))
    return Difference(difference.missing, extra, difference.changed)


def _optimizer_state(prefix: str, optimizer: KeyedOptimizer) -> Iterator[tuple[str, torch.Tensor]]:
    for parameter, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                # Fused optimizers put the table's name before the key; the parameter's name has it already.
                yield f"{prefix}{parameter}.{key.rpartition('.')[2]}", value


def _create_state(optimizer: KeyedOptimizer, names: Collection[str]) -> None:
    """Let the optimizer make its state for these parameters, as it does at its first step, but move nothing.

    Loading fills what exists; state that does not exist yet would silently stay behind.
    """
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for name, parameter in optimizer.params.items():
        parameter.grad = torch.zeros_like(parameter) if name in names else None
    optimizer.step()
    optimizer.zero_grad()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
