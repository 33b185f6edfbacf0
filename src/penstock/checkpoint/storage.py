"""Tensors on disk: safetensors files written and read by torch.distributed.checkpoint, block by block.

Our own storage, because that of torch holds a copy of all tables while it writes. Values are streamed, and
checksums are taken on the way.
"""

import json
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from penstock.checkpoint.manifest import FileRecord, PieceRecord, TensorRecord
from penstock.config.errors import CheckpointError
from penstock.runtime.durable import BLOCK_BYTES
from penstock.runtime.world import World

_CODES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in _CODES}
"""By the names that manifests have: float32, int64."""


class _Hooks:
    """What the engine asks of a reader or writer that serves one call: nothing is set up, plans stay as they are."""

    def set_up(self, *args: Any, **kwargs: Any) -> None:
        pass

    def unchanged(self, plan: Any) -> Any:
        return plan

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return True

    set_up_storage_reader = set_up_storage_writer = reset = set_up
    prepare_local_plan = prepare_global_plan = unchanged


def value_blocks(tensor: torch.Tensor) -> Iterator[memoryview]:
    """The values of a tensor as bytes, a block of rows at a time, so that no table is ever copied."""
    if tensor.numel() == 0:
        return
    rows = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach()
    row_bytes = rows[0].numel() * rows.element_size()
    for block in torch.split(rows, max(1, BLOCK_BYTES // row_bytes)):
        yield block.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


class SafetensorsReader(_Hooks, StorageReader):
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
        stored: dict[str, Any] = {}
        for name, tensor in self.tensors.items():
            chunks = [
                ChunkStorageMetadata(torch.Size(piece.offsets), torch.Size(piece.shape))
                for piece in tensor.pieces
            ]
            properties = TensorProperties(_DTYPES[tensor.dtype])
            stored[name] = TensorStorageMetadata(properties, torch.Size(tensor.shape), chunks)
        return Metadata(stored)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_file.setdefault(self._pieces[item.storage_index].file, []).append(item)
        for file, items in by_file.items():
            with (self.directory / file).open("rb", buffering=0) as stream:
                for item in items:
                    target = planner.resolve_tensor(item)
                    dtype = _DTYPES[self.tensors[item.storage_index.fqn].dtype]
                    _read_box(stream, self._pieces[item.storage_index], dtype, item, target.detach())
                    planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done


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
        for dimension in range(1, values.dim()):
            values = values.narrow(dimension, item.storage_offsets[dimension], item.lengths[dimension])
        target.narrow(0, done, count).copy_(values)


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


class _Written(NamedTuple):
    piece: PieceRecord
    file: FileRecord


@dataclass
class SafetensorsWriter(_Hooks, StorageWriter):
    """Writes pieces of tensors into the file of one rank; `files` and `tensors` are filled on the first rank."""

    path: Path
    files: dict[str, FileRecord] = field(default_factory=dict)
    tensors: dict[str, TensorRecord] = field(default_factory=dict)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items into one file; wide dtypes first, so that all values are aligned."""
        done: Future[list[WriteResult]] = Future()
        if not plan.items:
            done.set_result([])
            return done
        pieces = []
        for item in plan.items:
            data = item.tensor_data
            assert data is not None, "only tensors are given to the engine"
            offsets, name = tuple(data.chunk.offsets), item.index.fqn
            if data.chunk.sizes != data.size:
                name += f"@{','.join(map(str, offsets))}"
            pieces.append((data.properties.dtype, name, offsets, data.chunk.sizes, item))
        pieces.sort(key=lambda piece: (-piece[0].itemsize, piece[4].index.fqn, piece[2]))
        header, starts = {}, [0]
        for dtype, name, _, sizes, _ in pieces:
            starts.append(starts[-1] + sizes.numel() * dtype.itemsize)
            header[name] = {"dtype": _CODES[dtype], "shape": list(sizes), "data_offsets": starts[-2:]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        opening = len(text).to_bytes(8, "little") + text
        crc, size_bytes = zlib.crc32(opening), len(opening)
        with self.path.open("xb") as stream:
            stream.write(opening)
            for *_, item in pieces:
                tensor = planner.resolve_data(item)
                assert isinstance(tensor, torch.Tensor), "only tensors are given to the engine"
                for block in value_blocks(tensor):
                    crc = zlib.crc32(block, crc)
                    size_bytes += stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
        file, results = FileRecord(size_bytes, crc), []
        for (_, _, offsets, sizes, item), start, end in zip(pieces, starts, starts[1:], strict=False):
            piece = PieceRecord(offsets, tuple(sizes), self.path.name, len(opening) + start)
            results.append(WriteResult(item.index, end - start, _Written(piece, file)))
        done.set_result(results)
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
            dtype = str(stored.properties.dtype).removeprefix("torch.")
            self.tensors[name] = TensorRecord(tuple(stored.size), dtype, tuple(pieces[name]))


def write_tensors(
    directory: Path, tensors: Mapping[str, torch.Tensor], world: World
) -> tuple[dict[str, FileRecord], dict[str, TensorRecord]]:
    """Write tensors below `directory`; the first rank learns what was written. Every rank must call."""
    writer = SafetensorsWriter(directory / f"rank-{world.rank:05}.safetensors")
    with _engine(directory):
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                raise CheckpointError(f"'{name}' is a {type(tensor).__name__}, not a tensor")
            if tensor.dtype not in _CODES:
                dtype = str(tensor.dtype).removeprefix("torch.")
                raise CheckpointError(f"'{name}' has dtype {dtype}, which cannot be saved")
        save(dict(tensors), storage_writer=writer, no_dist=world.num_ranks == 1)
    return writer.files, writer.tensors


def read_tensors(
    directory: Path, stored: Mapping[str, TensorRecord], into: Mapping[str, torch.Tensor], world: World
) -> None:
    """Fill the tensors of `into`, whose names and shapes fit, in place. Every rank must call."""
    with _engine(directory), torch.no_grad():
        load(dict(into), storage_reader=SafetensorsReader(directory, stored), no_dist=world.num_ranks == 1)


def describe(tensors: Mapping[str, torch.Tensor]) -> dict[str, TensorRecord]:
    """Names, whole shapes and dtypes, to compare with what a checkpoint holds."""
    with _engine():
        return {
            name: TensorRecord(tuple(tensor.size()), str(tensor.dtype).removeprefix("torch."))
            for name, tensor in tensors.items()
        }


@contextmanager
def _engine(directory: Path | None = None) -> Iterator[None]:
    """Turn the engine's report of what failed on which rank into one line.

    Leaves out torch's notices about ShardedTensor, which is torchrec's choice, and a missing group.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            warnings.filterwarnings("ignore", message="Please use DTensor instead")
            yield
    except CheckpointException as error:
        rank, (reason, _) = min(error.failures.items())
        raise CheckpointError(f"{directory}: rank {rank}: {reason}") from error
