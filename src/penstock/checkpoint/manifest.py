"""The JSON files of a checkpoint: its table of contents, and documents of small state.

`manifest.json` is the last file written. It names every file with its size and checksum and every tensor with
its shape, dtype and the pieces it is stored in, so that nothing has to be guessed from, or executed out of,
the rest. A document is nested dicts and lists of plain values, NumPy arrays and bytes. Nothing is ever pickled.
"""

import base64
import dataclasses
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Self

import numpy as np

from penstock.config.errors import CheckpointError

MANIFEST_NAME = "manifest.json"

FORMAT = 1


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Size and CRC-32 of one file of the checkpoint."""

    size_bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class PieceRecord:
    """One box of a tensor: where it lies in the tensor (offsets, shape) and on disk (file, first byte)."""

    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    file: str
    start_byte: int


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One tensor as the whole world sees it, and the pieces that the ranks wrote."""

    shape: tuple[int, ...]
    dtype: str
    pieces: tuple[PieceRecord, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`, with tuples for lists."""
        pieces = (
            PieceRecord(tuple(piece["offsets"]), tuple(piece["shape"]), piece["file"], piece["start_byte"])
            for piece in value["pieces"]
        )
        return cls(tuple(value["shape"]), value["dtype"], tuple(pieces))

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """Everything that is known about a checkpoint before a tensor is read."""

    step: int
    versions: Mapping[str, str]
    files: Mapping[str, FileRecord]
    tensors: Mapping[str, TensorRecord]
    documents: tuple[str, ...]

    def encode(self) -> bytes:
        """The text of `manifest.json`, with a checksum of itself."""
        body = {"format": FORMAT, **dataclasses.asdict(self)}
        crc32 = zlib.crc32(json.dumps(body, sort_keys=True).encode())
        return json.dumps({"checkpoint": body, "crc32": crc32}, indent=1, sort_keys=True).encode()

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The manifest of a checkpoint directory, or a CheckpointError that says why there is none."""
        try:
            text = (directory / MANIFEST_NAME).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            reason = "there is no such checkpoint"
            if directory.is_dir():
                reason = f"no {MANIFEST_NAME}: written by another program, or not written to the end"
            elif directory.exists():
                reason = "is a file; a checkpoint is a folder such as checkpoints/step-100"
            raise CheckpointError(f"{directory}: {reason}") from None
        except OSError as error:
            raise CheckpointError(f"{directory}: {MANIFEST_NAME}: {error.strerror}") from None
        try:
            envelope = json.loads(text)
            body = envelope["checkpoint"]
            if zlib.crc32(json.dumps(body, sort_keys=True).encode()) != envelope["crc32"]:
                raise ValueError("its checksum differs")
            if body["format"] != FORMAT:
                message = f"has format {body['format']}, but this Penstock reads {FORMAT}; upgrade it"
                raise CheckpointError(f"{directory}: {message}")
            manifest = cls(
                step=body["step"],
                versions=body["versions"],
                files={name: FileRecord(**record) for name, record in body["files"].items()},
                tensors={name: TensorRecord.from_json(record) for name, record in body["tensors"].items()},
                documents=tuple(body["documents"]),
            )
            for name in manifest.files:
                if PurePath(name).name != name:
                    raise ValueError(f"file name '{name}' leaves the checkpoint")
            # Every file that is read must be one whose checksum is known.
            used = {f"{name}.json" for name in manifest.documents}
            used |= {piece.file for tensor in manifest.tensors.values() for piece in tensor.pieces}
            if unknown := sorted(used - manifest.files.keys()):
                raise ValueError(f"file '{unknown[0]}' is used but not listed")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{directory}: {MANIFEST_NAME} is damaged ({error})") from None
        return manifest


class TensorMismatch(CheckpointError):
    """The tensors of a checkpoint are not those of the model that it is to be loaded into."""


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """Names that are only on one side, and tensors that are another shape or dtype than the checkpoint's."""

    missing: tuple[str, ...] = ()
    """Wanted, but not in the checkpoint."""
    extra: tuple[str, ...] = ()
    """In the checkpoint, but not wanted."""
    changed: tuple[str, ...] = ()
    """In both, but not alike: each entry is a name with both descriptions."""

    @classmethod
    def between(cls, stored: Mapping[str, TensorRecord], wanted: Mapping[str, TensorRecord]) -> Self:
        changed = [
            f"{name} (checkpoint {stored[name]}, model {wanted[name]})"
            for name in sorted(stored.keys() & wanted.keys())
            if (stored[name].shape, stored[name].dtype) != (wanted[name].shape, wanted[name].dtype)
        ]
        return cls(
            missing=tuple(sorted(wanted.keys() - stored.keys())),
            extra=tuple(sorted(stored.keys() - wanted.keys())),
            changed=tuple(changed),
        )

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.changed)

    def __str__(self) -> str:
        return self.shown(10)

    def shown(self, num_names: int) -> str:
        """Of each kind of difference the first names, and how many more there are."""
        parts = {
            "missing in the checkpoint": self.missing,
            "only in the checkpoint": self.extra,
            "not alike": self.changed,
        }
        return "; ".join(
            f"{title}: {', '.join(names[:num_names])}"
            + (f" and {len(names) - num_names} more" if len(names) > num_names else "")
            for title, names in parts.items()
            if names
        )


def to_json(value: Any, path: str) -> Any:
    """A document in what JSON can carry; what it cannot is refused by its path in the document.

    An array becomes `{"$array": {"dtype": "<i8", "shape": [2], "base64": "..."}}`, bytes `{"$bytes": "..."}`, tuples
    become lists. `from_json` gives arrays and bytes back, bit for bit.
    """
    match value:
        case None | bool() | int() | str() | float():
            return value
        case np.ndarray() if not value.dtype.hasobject:
            content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return {"$array": {"dtype": value.dtype.str, "shape": list(value.shape), "base64": content}}
        case np.generic() if not value.dtype.hasobject:
            return to_json(value.item(), path)
        case bytes() | bytearray():
            return {"$bytes": base64.b64encode(value).decode()}
        case list() | tuple():
            return [to_json(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case dict():
            for key in value:
                if not isinstance(key, str) or key.startswith("$"):
                    raise CheckpointError(
                        f"{path}: key {key!r} cannot be saved; keys are strings that do not begin with '$'"
                    )
            return {key: to_json(item, f"{path}.{key}") for key, item in value.items()}
    raise CheckpointError(
        f"{path}: a {type(value).__name__} cannot be saved in a document; give numbers, strings, lists, "
        "dicts, NumPy arrays or bytes (tensors are saved beside the documents)"
    )


def from_json(item: dict[str, Any]) -> Any:
    """The object hook that undoes `to_json`."""
    if "$bytes" in item:
        return base64.b64decode(item["$bytes"])
    if "$array" not in item:
        return item
    array = item["$array"]
    dtype, shape = np.dtype(array["dtype"]), array["shape"]
    values = np.frombuffer(base64.b64decode(array["base64"]), dtype=dtype, count=math.prod(shape))
    return values.reshape(shape).copy()
