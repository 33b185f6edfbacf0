"""Everything that training changes in a model and its optimizers, by name, for checkpoints.

Names are `model.<parameter>`, `sparse_optimizer.<parameter>.<state>`, `dense_optimizer.<parameter>.<state>` and
`ema.<parameter>`, the same on any number of ranks and for sharded and unsharded models.
The tensors are those in use, not copies: loading into them is loading into the model. Only numbers that an optimizer
counts by are copied, and given back after loading.
"""

from collections.abc import Collection

import numpy as np
import torch
from torch import nn
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.keyed import KeyedOptimizer

from penstock.checkpoint import Checkpoint, TensorDifference
from penstock.config.errors import CheckpointError
from penstock.optim.dense import DenseAverages

_MODEL, _SPARSE, _DENSE, _AVERAGE = "model.", "sparse_optimizer.", "dense_optimizer.", "ema."


def model_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers, of a sharded model or of an ordinary one."""
    return {f"{_MODEL}{name}": tensor for name, tensor in model.state_dict().items()}


def training_state(
    model: DistributedModelParallel, dense_optimizer: KeyedOptimizer, averages: DenseAverages | None = None
) -> dict[str, torch.Tensor]:
    """Model, state of the optimizers of its tables and of everything else, and running means where they are kept."""
    state = model_state(model)
    for prefix, optimizer in ((_SPARSE, model.fused_optimizer), (_DENSE, dense_optimizer)):
        for parameter, of_parameter in optimizer.state_dict()["state"].items():
            for key, value in of_parameter.items():
                # Fused optimizers put the table's name before the key; the parameter's name has it already.
                name = f"{prefix}{parameter}.{key.rpartition('.')[2]}"
                if isinstance(value, torch.Tensor):
                    state[name] = value
                elif isinstance(value, int | float):  # as an array of NumPy a float keeps all its digits
                    state[name] = torch.from_numpy(np.asarray(value))
    means = averages.state_dict() if averages is not None else {}
    return state | {f"{_AVERAGE}{name}": tensor for name, tensor in means.items()}


def load_training_state(
    checkpoint: Checkpoint,
    model: DistributedModelParallel,
    dense_optimizer: KeyedOptimizer,
    averages: DenseAverages | None = None,
) -> None:
    """Bring model and optimizers to where they were; a checkpoint that does not fit is refused by name."""
    dense_names = (name.removeprefix(_DENSE) for name in checkpoint.tensors if name.startswith(_DENSE))
    _create_state(dense_optimizer, {name.rpartition(".")[0] for name in dense_names})
    state = training_state(model, dense_optimizer, averages)
    difference = checkpoint.difference(state)
    names = (*difference.missing, *difference.extra, *difference.changed)
    if names and not any(name.startswith(_MODEL) for name in names):
        raise CheckpointError(
            f"{checkpoint.path}: was trained with other optimizers or running means: {difference.shown(1)}; "
            "choose those again, or start them over with --ignore_restore_optimizer"
        )
    checkpoint.load_tensors(state)
    for name, parameter in dense_optimizer.params.items():
        own = dense_optimizer.state.get(parameter, {})
        for key, value in own.items():
            if isinstance(value, int | float):  # a copy was loaded
                own[key] = type(value)(state[f"{_DENSE}{name}.{key}"].item())


def load_averages(checkpoint: Checkpoint, model: nn.Module) -> None:
    """Bring the running means of a checkpoint into the dense parameters of a model that scores."""
    averaged = {name.removeprefix(_AVERAGE) for name in checkpoint.tensors if name.startswith(_AVERAGE)}
    if not averaged:
        raise CheckpointError(
            f"{checkpoint.path}: holds no running means of parameters; set eval_config.use_dense_ema: false"
        )
    parameters = {name: parameter for name, parameter in model.named_parameters() if name in averaged}
    checkpoint.load_tensors(
        {f"{_AVERAGE}{name}": parameter.data for name, parameter in parameters.items()}, strict=False
    )


def load_model_state(checkpoint: Checkpoint, model: nn.Module) -> TensorDifference:
    """Bring only the model, sharded or not, to where it was.

    What only one side has is not loaded and is the caller's to judge; optimizer state is no difference here.
    """
    difference = checkpoint.load_tensors(model_state(model), strict=False)
    extra = tuple(name for name in difference.extra if name.startswith(_MODEL))
    return TensorDifference(difference.missing, extra, difference.changed)


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
