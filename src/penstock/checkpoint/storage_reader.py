"""Where torch.distributed.checkpoint reads: the pieces that a manifest names, divided as they may be.

What the engine knows of the checkpoint comes from the manifest; nothing is unpickled.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from penstock.checkpoint.manifest import PieceRecord, TensorRecord
from penstock.checkpoint.safetensors_format import dtype_named
from penstock.config.errors import CheckpointError
from penstock.runtime.durable import BLOCK_BYTES


class SafetensorsReader(StorageReader):
    """Reads pieces of tensors below `directory` into tensors that exist already."""

    def __init__(self, directory: Path, tensors: Mapping[str, TensorRecord]) -> None:
        self.directory = directory
        self.tensors = tensors
        self._pieces = {
            MetadataIndex(name, piece.offsets): piece
            for name, tensor in tensors.items()
            for piece in tensor.pieces
        }

    def read_metadata(self) -> Metadata:
        """What the engine plans with."""
        return Metadata({name: _metadata(tensor) for name, tensor in self.tensors.items()})

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Fill this rank's tensors."""
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_file.setdefault(self._pieces[item.storage_index].file, []).append(item)
        for file, items in by_file.items():
            with (self.directory / file).open("rb", buffering=0) as stream:
                for item in items:
                    target = planner.resolve_tensor(item)
                    dtype = dtype_named(self.tensors[item.storage_index.fqn].dtype)
                    _read_box(stream, self._pieces[item.storage_index], dtype, item, target.detach())
                    planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Nothing to add."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Nothing to add."""
        return plans

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """The manifest has told everything."""

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """A reader serves one load."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Any directory will do."""
        return True


def _metadata(tensor: TensorRecord) -> TensorStorageMetadata:
    chunks = [
        ChunkStorageMetadata(torch.Size(piece.offsets), torch.Size(piece.shape)) for piece in tensor.pieces
    ]
    return TensorStorageMetadata(
        TensorProperties(dtype_named(tensor.dtype)), torch.Size(tensor.shape), chunks
    )


def _read_box(
    stream: BinaryIO, piece: PieceRecord, dtype: torch.dtype, item: ReadItem, target: torch.Tensor
) -> None:
    """Copy the wanted part of a stored piece into `target`, a block of rows at a time."""
    if target.numel() == 0:
        return
    target = target.reshape(1) if target.dim() == 0 else target
    first_row, num_rows, row_shape = sum(item.storage_offsets[:1]), target.size(0), piece.shape[1:]
    row_bytes = torch.Size(row_shape).numel() * dtype.itemsize
    rows_per_block = max(1, BLOCK_BYTES // row_bytes)
    stream.seek(piece.start_byte + first_row * row_bytes)
    for done in range(0, num_rows, rows_per_block):
        count = min(rows_per_block, num_rows - done)
        values = torch.frombuffer(_read(stream, count * row_bytes), dtype=dtype).view(count, *row_shape)
        target.narrow(0, done, count).copy_(_columns(values, item.storage_offsets[1:], item.lengths[1:]))


def _columns(rows: torch.Tensor, offsets: Sequence[int], lengths: Sequence[int]) -> torch.Tensor:
    """The wanted part of whole rows."""
    for dimension, (offset, length) in enumerate(zip(offsets, lengths, strict=True), start=1):
        rows = rows.narrow(dimension, offset, length)
    return rows


def _read(stream: BinaryIO, num_bytes: int) -> bytearray:
    buffer = bytearray(num_bytes)
    view, filled = memoryview(buffer), 0
    while filled < num_bytes:
        count = stream.readinto(view[filled:])  # type: ignore[attr-defined]  # an unbuffered file has it
        if not count:
            raise CheckpointError(
                f"{stream.name}: ends after {stream.tell()} bytes, in the middle of a tensor"
            )
        filled += count
    return buffer
