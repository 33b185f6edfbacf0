"""What some lines of JSON say about all: keys, types and sizes."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.readers.text.json_types import join_types, value_type

_VALUE_BYTES = 8
"""Of a number, or of the offset of a text or a list with what it needs besides."""


@dataclass(slots=True)
class JsonSample:
    """What the sampled lines of the files say."""

    types: dict[str, Any] = field(default_factory=dict)
    """The narrowest type that holds every sampled value, by key, in the order in which keys were met."""
    num_rows: int = 0
    content_bytes: dict[str, int] = field(default_factory=dict)
    """Of texts and lists, by key."""
    text_row_bytes: int = 1
    """Of a row as text: the largest mean of a place."""

    def row_bytes(self, names: Iterable[str]) -> int:
        """Bytes of a row in memory, with its origin."""
        if not self.num_rows:
            return 1
        contents = sum(self.content_bytes.get(name, 0) for name in names)
        return _VALUE_BYTES * (len(list(names)) + 1) + -(-contents // self.num_rows)


def sample_lines(texts: Iterable[bytes]) -> JsonSample:
    """Look at some lines; those that cannot be read are left for the reader to complain about."""
    sample = JsonSample()
    for text in texts:
        objects = list(_objects(text))
        sample.num_rows += len(objects)
        sample.text_row_bytes = max(sample.text_row_bytes, len(text) // max(1, len(objects)))
        for found in objects:
            for key, value in found.items():
                sample.types[key] = join_types(sample.types.get(key, pa.null()), value_type(value))
                sample.content_bytes[key] = sample.content_bytes.get(key, 0) + _content_bytes(value)
    return sample


def _objects(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.split(b"\n"):
        try:
            found = json.loads(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _content_bytes(value: object) -> int:
    match value:
        case str():
            return len(value.encode(errors="replace"))
        case list():
            return sum(_VALUE_BYTES + _content_bytes(item) for item in value)
        case dict():
            return sum(_VALUE_BYTES + _content_bytes(item) for item in value.values())
        case _:
            return 0
