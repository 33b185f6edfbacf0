"""Tensors to and from a checkpoint directory, through torch.distributed.checkpoint.

Plain tensors, ShardedTensor and DTensor go in and come out, on one rank or many, divided among the ranks in
another way than when they were written. In this package only this module and those it uses import torch.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from penstock.checkpoint.manifest import FileRecord, TensorRecord
from penstock.checkpoint.safetensors_format import can_hold, dtype_name
from penstock.checkpoint.storage_reader import SafetensorsReader
from penstock.checkpoint.storage_writer import SafetensorsWriter
from penstock.config.errors import CheckpointError


def write_tensors(
    directory: Path, tensors: Mapping[str, torch.Tensor], alone: bool
) -> tuple[dict[str, FileRecord], dict[str, TensorRecord]]:
    """Write tensors below `directory`; the first rank learns what was written. Every rank must call."""
    with _without_notices():
        _require_tensors(tensors)
    writer = SafetensorsWriter(directory)
    with _engine_errors(directory):
        save(dict(tensors), storage_writer=writer, no_dist=alone)
    return writer.files, writer.tensors


def read_tensors(
    directory: Path, stored: Mapping[str, TensorRecord], into: Mapping[str, torch.Tensor], alone: bool
) -> None:
    """Fill the tensors of `into`, whose names and shapes fit, in place. Every rank must call."""
    with _engine_errors(directory), torch.no_grad():
        load(dict(into), storage_reader=SafetensorsReader(directory, stored), no_dist=alone)


def describe(tensors: Mapping[str, torch.Tensor]) -> dict[str, TensorRecord]:
    """Names, whole shapes and dtypes, to compare with what a checkpoint holds."""
    with _without_notices():
        return {
            name: TensorRecord(tuple(tensor.size()), dtype_name(tensor.dtype))
            for name, tensor in tensors.items()
        }


def _require_tensors(tensors: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise CheckpointError(f"'{name}' is a {type(tensor).__name__}, not a tensor")
        if not can_hold(tensor.dtype):
            raise CheckpointError(f"'{name}' has dtype {dtype_name(tensor.dtype)}, which cannot be saved")


@contextmanager
def _engine_errors(directory: Path) -> Iterator[None]:
    """Turn the engine's report of what failed on which rank into one line."""
    try:
        with _without_notices():
            yield
    except CheckpointException as error:
        rank, (reason, _) = min(error.failures.items())
        raise CheckpointError(f"{directory}: rank {rank}: {reason}") from error


@contextmanager
def _without_notices() -> Iterator[None]:
    """Leave out torch's notices about ShardedTensor, which is torchrec's choice, and a missing group."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        warnings.filterwarnings("ignore", message="Please use DTensor instead")
        yield
