"""Which records stand where in a text file: found in one pass, and kept beside the run.

The index lists chunks of about 1 MiB of (decompressed) text that begin and end with a record, each with its offset,
its length and its number of records. So a run can go to any row, and knows how many there are.
"""

import hashlib
import json
import os
import uuid
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.readers.blocks import Int64Array
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import ends_checksum, fingerprint
from penstock.readers.text.framing import Framing
from penstock.readers.text.pieces import cut_records
from penstock.readers.text.source import TextFile

CHUNK_BYTES = MIB
MOST_RECORD_BYTES = 16 * MIB
LEAST_KEPT_BYTES = 16 * MIB
"""Of a smaller file the index is not kept: it is made again in no time."""
_VERSION = 1


@dataclass(frozen=True)
class RecordIndex:
    """Chunks of one file in its order; none is without records."""

    checksum: int
    """Of the first and the last bytes of the file."""
    offsets: Int64Array
    num_bytes: Int64Array
    num_records: Int64Array

    @property
    def total_records(self) -> int:
        """Records of the file."""
        return int(self.num_records.sum())


def index_records(file: DataFile, data_start: int, framing: Framing, index_dir: Path | None) -> RecordIndex:
    """The index of a file: as it was kept, or else made now and kept in `index_dir`; None keeps nothing."""
    form = f"{framing.name} from {data_start}"
    return kept_index(
        file, form, index_dir, lambda checksum: scan_records(file, data_start, framing, checksum)
    )


def kept_index(
    file: DataFile, form: str, index_dir: Path | None, scan: Callable[[int], RecordIndex]
) -> RecordIndex:
    """The index that `scan` makes of a file, given its checksum, kept in `index_dir`; None keeps nothing.

    Only where going through the file takes a while is it worth a file of its own.
    `form` tells apart how the same file may be framed.
    """
    checksum = ends_checksum(file)
    if index_dir is None or file.size_bytes < LEAST_KEPT_BYTES:
        return scan(checksum)
    key = _key(file, form, checksum)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    path = index_dir / f"{file.name}.{digest}.npz"
    kept = _load(path, key, checksum)
    if kept is None:
        kept = scan(checksum)
        _save(path, key, kept)
    return kept


def scan_records(
    file: DataFile, data_start: int, framing: Framing, checksum: int, chunk_bytes: int = CHUNK_BYTES
) -> RecordIndex:
    """Go through the text once."""
    sizes = (chunk_bytes, max(chunk_bytes, MOST_RECORD_BYTES))
    with closing(TextFile(file)) as text:
        pieces = cut_records(text, framing, data_start, None, sizes)
        found = [(piece.offset, len(piece.text), piece.num_records) for piece in pieces if piece.num_records]
    table = np.array(found, np.int64).reshape(-1, 3)
    return RecordIndex(checksum, table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


def _key(file: DataFile, form: str, checksum: int) -> str:
    """What the index follows from, and when the file was written, so that a change in its middle is noticed."""
    changed_ns = os.stat(file.path).st_mtime_ns if os.path.exists(file.path) else None
    mark = fingerprint(file, None, checksum)
    return json.dumps([_VERSION, mark, changed_ns, form, CHUNK_BYTES])


def _load(path: Path, key: str, checksum: int) -> RecordIndex | None:
    """The kept index; None where there is none, or a torn one."""
    try:
        with np.load(path) as kept:
            if str(kept["key"]) != key:
                return None
            return RecordIndex(checksum, kept["offsets"], kept["num_bytes"], kept["num_records"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _save(path: Path, key: str, index: RecordIndex) -> None:
    """Under a name of its own first: other processes may be writing the same index."""
    staging = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with staging.open("wb") as target:
            np.savez(
                target,
                key=np.array(key),
                offsets=index.offsets,
                num_bytes=index.num_bytes,
                num_records=index.num_records,
            )
        staging.replace(path)
    except OSError as error:
        raise DataError(
            f"{path}: the index of records cannot be written: {error.strerror or error}"
        ) from error
