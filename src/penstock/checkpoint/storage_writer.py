"""Where torch.distributed.checkpoint writes: one safetensors file per rank, and a layout for the manifest.

The engine decides which rank writes which piece of which tensor; this class streams the pieces to disk and
sums up what went where. Unlike the engine's own writer it pickles nothing and copies no table.
"""

import dataclasses
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future

from penstock.checkpoint.manifest import FileRecord, PieceRecord, TensorRecord
from penstock.checkpoint.safetensors_format import dtype_name, encode_header, value_blocks
from penstock.runtime.durable import flush_to_disk


@dataclass(frozen=True, slots=True)
class _Written:
    """What a rank tells the first rank about one piece."""

    piece: PieceRecord
    file: FileRecord


class SafetensorsWriter(StorageWriter):
    """Writes pieces of tensors below `directory`; `files` and `tensors` are filled on the first rank."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files: dict[str, FileRecord] = {}
        self.tensors: dict[str, TensorRecord] = {}

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this rank's file, if it has anything to write."""
        done: Future[list[WriteResult]] = Future()
        done.set_result(
            _write_file(self.directory / plan.storage_data, plan.items, planner) if plan.items else []
        )
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Collect what all ranks wrote; called on the first rank."""
        pieces: dict[str, list[PieceRecord]] = {}
        for result in (result for of_rank in results for result in of_rank):
            written: _Written = result.storage_data
            pieces.setdefault(result.index.fqn, []).append(written.piece)
            self.files[written.piece.file] = written.file
        for name, stored in metadata.state_dict_metadata.items():
            assert isinstance(stored, TensorStorageMetadata), "only tensors are given to the engine"
            dtype = dtype_name(stored.properties.dtype)
            self.tensors[name] = TensorRecord(tuple(stored.size), dtype, tuple(pieces[name]))

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give every rank its file name."""
        return [
            dataclasses.replace(plan, storage_data=f"rank-{rank:05}.safetensors")
            for rank, plan in enumerate(plans)
        ]

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Nothing to add on a rank alone."""
        return plan

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """The directory exists already."""

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """A writer serves one save."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Any directory will do."""
        return True


def _write_file(path: Path, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
    """Write the items into one file; wide dtypes first, so that all values are aligned."""
    items = sorted(items, key=lambda item: (-_dtype(item).itemsize, item.index.fqn, _offsets(item)))
    header = encode_header(
        [(_piece_name(item), _dtype(item), _shape(item), _size_bytes(item)) for item in items]
    )
    crc, start_byte, pieces = zlib.crc32(header), len(header), []
    with path.open("xb") as stream:
        stream.write(header)
        for item in items:
            pieces.append(PieceRecord(_offsets(item), _shape(item), path.name, start_byte))
            tensor = planner.resolve_data(item)
            assert isinstance(tensor, torch.Tensor), "only tensors are given to the engine"
            for block in value_blocks(tensor):
                crc = zlib.crc32(block, crc)
                start_byte += stream.write(block)
        flush_to_disk(stream)
    file = FileRecord(start_byte, crc)
    return [
        WriteResult(index=item.index, size_in_bytes=_size_bytes(item), storage_data=_Written(piece, file))
        for item, piece in zip(items, pieces, strict=True)
    ]


def _piece_name(item: WriteItem) -> str:
    """The tensor's name, with the piece's place when it is not the whole."""
    data = item.tensor_data
    assert data is not None
    whole = data.chunk.sizes == data.size
    return item.index.fqn if whole else f"{item.index.fqn}@{','.join(map(str, _offsets(item)))}"


def _dtype(item: WriteItem) -> torch.dtype:
    assert item.tensor_data is not None
    return item.tensor_data.properties.dtype


def _shape(item: WriteItem) -> tuple[int, ...]:
    assert item.tensor_data is not None
    return tuple(item.tensor_data.chunk.sizes)


def _offsets(item: WriteItem) -> tuple[int, ...]:
    assert item.tensor_data is not None
    return tuple(item.tensor_data.chunk.offsets)


def _size_bytes(item: WriteItem) -> int:
    return torch.Size(_shape(item)).numel() * _dtype(item).itemsize
