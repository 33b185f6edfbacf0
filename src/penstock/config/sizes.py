"""Byte sizes as people write them: 4GiB, 64MiB, 10MB, or a plain number of bytes."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": KIB,
    "MIB": MIB,
    "GIB": GIB,
    "TIB": TIB,
}
_BINARY = (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def parse_size(size: int | str) -> int:
    """The bytes of a size as people write it; what is no string is a number of bytes, or for pydantic to refuse."""
    if not isinstance(size, str):
        if type(size) is int and size < 0:
            raise ValueError(f"is {size}; a size cannot be negative")
        return size
    match = _PATTERN.fullmatch(size)
    unit = _UNITS.get((match[2] or "B").upper()) if match else None
    if match is None or unit is None:
        raise ValueError(f"is '{size}'; expected a size such as 4GiB, 64MiB, 10MB or a number of bytes")
    if "." not in match[1]:
        return int(match[1]) * unit
    return round(float(match[1]) * unit)


def format_size(num_bytes: int) -> str:
    """A size for people: in the largest unit that fits, with at most one decimal."""
    for name, unit in _BINARY:
        if abs(num_bytes) >= unit:
            return f"{num_bytes / unit:.1f}".removesuffix(".0") + name
    return f"{num_bytes}B"


def exact_size(num_bytes: int) -> int | str:
    for name, unit in _BINARY:
        if num_bytes and num_bytes % unit == 0:
            return f"{num_bytes // unit}{name}"
    return num_bytes


@dataclass(frozen=True, slots=True)
class SizeInBytes:
    """Marks a field whose integer is a number of bytes, so that it is read and written as a size."""


ByteSize = Annotated[
    int,
    BeforeValidator(parse_size),
    SizeInBytes(),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}),
]
"""A field in bytes that also accepts '4GiB', '64MiB' or '10MB'."""
