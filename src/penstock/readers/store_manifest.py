"""`manifest.json`: which batch files of a folder, or which files of a store, belong together; it is written last.

A folder of batch files without one is not finished; a store without one is none. Manifests and the other JSON documents
beside them appear when they are whole, and carry kind, version and a checksum.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from penstock.config.errors import DataError
from penstock.readers.store_schema import StoreSchema
from penstock.runtime.durable import replacing

MANIFEST_NAME = "manifest.json"
PREPARATION_NAME = "preparation.json"
BATCHES_KIND, BATCHES_VERSION = "penstock batches", 1
STORE_KIND, STORE_VERSION = "penstock store", 1

_ENVELOPE = ("kind", "version", "crc32")


class DamagedFile(DataError):
    """Bytes of a file are missing, or not those that were written; the cure depends on where it lies."""

    def __init__(self, problem: str, cure: str = "write it again") -> None:
        super().__init__(f"{problem}; {cure}")
        self.problem, self.cure = problem, cure

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.problem, self.cure)


class MissingFile(DamagedFile):
    """The whole file is gone."""


class DamagedStore(DataError):
    """The manifest of a store is not what was written."""


@dataclass(frozen=True)
class BatchRecord:
    name: str
    num_samples: int
    num_bytes: int
    checksum: int  # of its header, which has the checksums of the arrays


@dataclass(frozen=True)
class InputRecord:
    """A raw file as it was when it was read."""

    path: str
    num_bytes: int
    checksum: int
    modified_ns: int | None = None  # None: the object store does not say
    num_samples: int = 0


@dataclass(frozen=True)
class Manifest:
    """A folder of batch files: what they were made of, and what is in them."""

    inputs: tuple[InputRecord, ...]
    batches: tuple[BatchRecord, ...]  # in the order in which they are merged
    schema: StoreSchema
    settings: Mapping[str, Any]  # those of the run file that decide what is in the batch files

    @property
    def num_samples(self) -> int:
        return sum(batch.num_samples for batch in self.batches)

    def write(self, directory: Path) -> None:
        """Everything that it lists must be there already."""
        body = {
            "num_samples": self.num_samples,
            "schema": self.schema.as_document(),
            "settings": dict(self.settings),
            "inputs": [asdict(record) for record in self.inputs],
            "batches": [asdict(record) for record in self.batches],
        }
        write_document(directory / MANIFEST_NAME, BATCHES_KIND, BATCHES_VERSION, body)

    @classmethod
    def read(cls, directory: Path) -> Self:
        absent = "there is none: the batch files are not finished; run penstock prep"
        try:
            body = read_document(directory / MANIFEST_NAME, BATCHES_KIND, BATCHES_VERSION, absent)
        except DamagedFile as error:
            if not (directory / PREPARATION_NAME).exists():
                raise
            raise DataError(f"{error.problem}; run penstock prep, which writes it again") from error
        return cls(
            inputs=tuple(InputRecord(**record) for record in body["inputs"]),
            batches=tuple(BatchRecord(**record) for record in body["batches"]),
            schema=StoreSchema.from_document(body["schema"]),
            settings=body["settings"],
        )


def is_unfinished(intermediate_dir: Path) -> bool:
    """Whether its batch files are of a preparation that is still running, or was stopped."""
    return (intermediate_dir / PREPARATION_NAME).exists() and not (intermediate_dir / MANIFEST_NAME).exists()


def check_finished(intermediate_dir: Path) -> None:
    if is_unfinished(intermediate_dir):
        raise DataError(
            f"{intermediate_dir}: its batch files are not finished; run penstock prep, which goes on with them"
        )


def read_store(folder: Path, name: str = MANIFEST_NAME) -> dict[str, Any]:
    absent = "there is none: no merge has finished here; run penstock merge"
    try:
        return read_document(folder / name, STORE_KIND, STORE_VERSION, absent)
    except DamagedFile as error:
        # Without it nobody knows which files are of the store: a merge would replace none of them.
        cure = "remove it and the files of the store beside it, and merge again, or choose another output_dir"
        raise DamagedStore(f"{error.problem}; {cure}") from error


def write_document(path: Path, kind: str, version: int, body: Mapping[str, Any]) -> None:
    """Write a JSON document durably, in place of one that may be there."""
    try:
        with replacing(path) as stream:
            stream.write(encoded_document(kind, version, body))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; nothing is left of it"
        ) from error


def encoded_document(kind: str, version: int, body: Mapping[str, Any]) -> bytes:
    envelope = {"kind": kind, "version": version, "crc32": _checksum(body)}
    return (json.dumps({**envelope, **body}, indent=1) + "\n").encode()


def read_document(path: Path, kind: str, version: int, absent: str) -> dict[str, Any]:
    """The body of a document; DataError, with `absent` where there is no such file, says why there is none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: {absent}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        document = json.loads(text)
        found = document["kind"], document["version"], document["crc32"]
    except (ValueError, KeyError, TypeError):
        raise DamagedFile(f"{path}: is damaged or no {kind}") from None
    if found[0] != kind:
        raise DataError(f"{path}: is of kind '{found[0]}', but '{kind}' is wanted here; give another folder")
    if found[1] != version:
        raise DataError(f"{path}: has version {found[1]}, but this Penstock reads {version}; upgrade it")
    body = {key: value for key, value in document.items() if key not in _ENVELOPE}
    if _checksum(body) != found[2]:
        raise DamagedFile(f"{path}: is damaged: its checksum differs")
    return body


def _checksum(body: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())
