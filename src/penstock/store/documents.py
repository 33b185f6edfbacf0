"""JSON documents that appear when they are whole and know when they are not: kind, version, checksum, then the rest."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config.errors import DataError
from penstock.runtime.durable import replacing
from penstock.store.damage import DamagedFile

_ENVELOPE = ("kind", "version", "crc32")


def write_document(path: Path, kind: str, version: int, body: Mapping[str, Any]) -> None:
    """Write a document durably, in place of one that may be there."""
    try:
        with replacing(path) as stream:
            stream.write(encoded_document(kind, version, body))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; nothing is left of it"
        ) from error


def encoded_document(kind: str, version: int, body: Mapping[str, Any]) -> bytes:
    """The text of a document."""
    envelope = {"kind": kind, "version": version, "crc32": _checksum(body)}
    return (json.dumps({**envelope, **body}, indent=1) + "\n").encode()


def read_document(path: Path, kind: str, version: int, absent: str) -> dict[str, Any]:
    """What was written; DataError, with `absent` where there is no such file, says why there is nothing to read."""
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
