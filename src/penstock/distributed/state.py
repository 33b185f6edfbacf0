"""Everything that training changes in a model and its optimizers, by name, for checkpoints.

Names are `model.<parameter>`, `sparse_optimizer.<parameter>.<state>`, `dense_optimizer.<parameter>.<state>` and
`ema.<parameter>`, the same on any number of ranks and for sharded and unsharded models.
The tensors are those in use, not copies: loading into them is loading into the model. Only numbers that an optimizer
counts by are copied, and given back after loading.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata, TensorProperties
from torch.distributed._shard.sharded_tensor.shard import Shard
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.optim.keyed import KeyedOptimizer

from penstock.checkpoint import Checkpoint, TensorDifference
from penstock.config.errors import CheckpointError
from penstock.models.embeddings import narrow_tables
from penstock.optim.dense import DenseAverages

_MODEL, _SPARSE, _DENSE, _AVERAGE = "model.", "sparse_optimizer.", "dense_optimizer.", "ema."


def model_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers, of a sharded model or of an ordinary one."""
    widths = narrow_tables(model)
    return {
        f"{_MODEL}{name}": _at_true_width(tensor, widths.get(_table_of(name)))
        for name, tensor in model.state_dict().items()
    }


def _table_of(parameter: str) -> str:
    return parameter.rpartition(".")[0].rpartition(".")[2]


def _at_true_width(tensor: torch.Tensor, width: int | None) -> torch.Tensor:
    """A table, or what an optimizer keeps beside it, without the zeros behind its rows; a view, so that it can be
    loaded into.
    """
    if width is None:
        return tensor
    if not isinstance(tensor, ShardedTensor):
        return tensor[:, :width] if tensor.dim() > 1 else tensor
    metadata = tensor.metadata()
    if len(metadata.size) < 2:  # one number for each row
        return tensor
    shards = [
        ShardMetadata([*shard.shard_offsets], [shard.shard_sizes[0], width], shard.placement)
        for shard in metadata.shards_metadata
    ]
    by_offsets = {tuple(shard.shard_offsets): shard for shard in shards}
    own = [by_offsets[tuple(shard.metadata.shard_offsets)] for shard in tensor.local_shards()]
    size, properties = torch.Size([metadata.size[0], width]), metadata.tensor_properties
    narrow: ShardedTensor = ShardedTensor._init_from_local_shards_and_global_metadata(
        # torch takes contiguous shards only: these are never touched, and the views stand in for them.
        [
            Shard(shard.tensor.new_empty(each.shard_sizes), each)
            for shard, each in zip(tensor.local_shards(), own, strict=True)
        ],
        ShardedTensorMetadata(shards, size, TensorProperties(dtype=properties.dtype)),
        process_group=tensor._process_group,
    )
    for view, shard in zip(narrow.local_shards(), tensor.local_shards(), strict=True):
        view.tensor = shard.tensor.detach()[:, :width]
    return narrow


def training_state(
    model: DistributedModelParallel, dense_optimizer: KeyedOptimizer, averages: DenseAverages | None = None
) -> dict[str, torch.Tensor]:
    """Model, state of the optimizers of its tables and of everything else, and running means where they are kept."""
    state, widths = model_state(model), narrow_tables(model)
    for prefix, optimizer in ((_SPARSE, model.fused_optimizer), (_DENSE, dense_optimizer)):
        for parameter, of_parameter in optimizer.state_dict()["state"].items():
            for key, value in of_parameter.items():
                # Fused optimizers put the table's name before the key; the parameter's name has it already.
                name = f"{prefix}{parameter}.{key.rpartition('.')[2]}"
                if isinstance(value, torch.Tensor):
                    width = widths.get(_table_of(parameter)) if prefix == _SPARSE else None
                    state[name] = _at_true_width(value, width)
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


def reset_rows(
    model: DistributedModelParallel,
    tables: Mapping[str, Callable[[torch.Tensor], object]],
    accumulator: float,
    rows: NDArray[np.int64],
    step: int,
) -> None:
    """Let rows of these tables start anew, with what their optimizer keeps of them: their keys are others now.

    `tables` are initialisers by table, and `accumulator` is where sums of squares begin. Random numbers depend on the
    step alone, so that a run that goes on draws the same.
    """
    state = training_state_of_tables(model)
    for name, initializer in tables.items():
        suffix = f".{name}.weight"
        for path, tensor in state.items():
            owner = path.rpartition(".")[0] if path.startswith(_SPARSE) else path
            if not owner.endswith(suffix) or not isinstance(tensor, ShardedTensor) or path.endswith(".step"):
                continue
            for part in tensor.local_shards():
                first = part.metadata.shard_offsets[0]
                local = rows[(rows >= first) & (rows < first + part.metadata.shard_sizes[0])] - first
                index = torch.from_numpy(local).to(part.tensor.device)
                fresh = torch.full((len(local), *part.tensor.shape[1:]), accumulator, dtype=torch.float32)
                if not path.startswith(_SPARSE):
                    with torch.random.fork_rng(devices=[]):
                        torch.manual_seed(step)
                        initializer(fresh)
                part.tensor[index] = fresh.to(part.tensor)


def training_state_of_tables(model: DistributedModelParallel) -> dict[str, torch.Tensor]:
    """Tables and what their optimizer keeps beside them."""
    state = model_state(model)
    for parameter, of_parameter in model.fused_optimizer.state_dict()["state"].items():
        for key, value in of_parameter.items():
            state[f"{_SPARSE}{parameter}.{key.rpartition('.')[2]}"] = value
    return state


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
