"""Parsed columns -> Batch, the first package with torch.

pack() copies the columns of a parsed batch once, to their final place in torchrec's tensors: one KeyedTensor
for the numbers and one KeyedJaggedTensor for the ids of each group of rows. BatchLoader does it for every
record batch of a stream and keeps the place. RecordBatchTensor carries columns that no model reads. Importing
this package does not import torch: names are resolved when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.tensors.batch import BASE, Batch, Position
    from penstock.tensors.loader import BatchLoader
    from penstock.tensors.packing import pack
    from penstock.tensors.record_batch import RecordBatchTensor

__all__ = ["BASE", "Batch", "BatchLoader", "Position", "RecordBatchTensor", "pack"]

_MODULES = {
    "BASE": "batch",
    "Batch": "batch",
    "BatchLoader": "loader",
    "Position": "batch",
    "RecordBatchTensor": "record_batch",
    "pack": "packing",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'penstock.tensors' has no attribute '{name}'")
    return getattr(import_module(f"penstock.tensors.{_MODULES[name]}"), name)
