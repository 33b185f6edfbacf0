"""Optimizer state that lies beside the shards of a table, and is saved and resharded as the table is."""

import torch
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor.api import ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata, TensorProperties
from torch.distributed._shard.sharded_tensor.shard import Shard


def zeros_beside(table: ShardedTensor) -> ShardedTensor:
    """A zero for each number of a table, on the rank that holds the number."""
    return _sharded_zeros(table, list(table.metadata().shards_metadata), table.metadata().size, torch.float32)


def counter_of(table: ShardedTensor) -> ShardedTensor:
    """One whole number for each shard of a table, on the rank of that shard."""
    shards = table.metadata().shards_metadata
    places = [ShardMetadata([index], [1], shard.placement) for index, shard in enumerate(shards)]
    return _sharded_zeros(table, places, torch.Size([len(shards)]), torch.int64)


def local_part(tensor: ShardedTensor) -> torch.Tensor:
    """The one shard on this rank, apart from the autograd history of the kernel that owns it."""
    [shard] = tensor.local_shards()
    return shard.tensor.data


def _sharded_zeros(
    table: ShardedTensor, places: list[ShardMetadata], size: torch.Size, dtype: torch.dtype
) -> ShardedTensor:
    held = {tuple(shard.metadata.shard_offsets): shard.tensor.device for shard in table.local_shards()}
    local = [
        Shard(torch.zeros(place.shard_sizes, dtype=dtype, device=held[tuple(beside.shard_offsets)]), place)
        for place, beside in zip(places, table.metadata().shards_metadata, strict=True)
        if tuple(beside.shard_offsets) in held
    ]
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        local,
        ShardedTensorMetadata(places, size, TensorProperties(dtype=dtype)),
        process_group=table._process_group,
    )
