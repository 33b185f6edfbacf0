"""The safetensors layout: a JSON header, then raw bytes. Any safetensors reader opens these files.

A file is an 8-byte little-endian header length, the header (name -> dtype, shape, data_offsets), and the
values of all tensors one after the other.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from penstock.runtime.durable import BLOCK_BYTES

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


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a dtype as manifests spell it: float32, int64."""
    return str(dtype).removeprefix("torch.")


def dtype_named(name: str) -> torch.dtype:
    """The dtype of a name; only those that a file can hold."""
    return _DTYPES[name]


def can_hold(dtype: torch.dtype) -> bool:
    """Whether the format has a code for this dtype."""
    return dtype in _CODES


def encode_header(entries: Sequence[tuple[str, torch.dtype, Sequence[int], int]]) -> bytes:
    """The opening bytes of a file that holds `entries` (name, dtype, shape, size in bytes) in this order."""
    header: dict[str, Any] = {}
    start = 0
    for name, dtype, shape, size_bytes in entries:
        header[name] = {
            "dtype": _CODES[dtype],
            "shape": list(shape),
            "data_offsets": [start, start + size_bytes],
        }
        start += size_bytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def value_blocks(tensor: torch.Tensor) -> Iterator[memoryview]:
    """The values of a tensor as bytes, a block of rows at a time, so that no table is ever copied."""
    if tensor.numel() == 0:
        return
    rows = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach()
    row_bytes = rows[0].numel() * rows.element_size()
    for block in torch.split(rows, max(1, BLOCK_BYTES // row_bytes)):
        yield block.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
