"""Pass 1: what the headers of all batch files say, in a few bytes for each array of each file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.batch_file import SUFFIXES, BatchHeader, BatchRecord, read_header
from penstock.store.manifest import MANIFEST_NAME, Manifest
from penstock.store.schema import ArrayNames, StoreSchema

_NO_CHECKSUM = -1


@dataclass(frozen=True)
class Batches:
    """All batch files of a merge, in order. Rows of the tables are files, columns are the arrays of the schema."""

    schema: StoreSchema
    paths: tuple[Path, ...]
    num_samples: NDArray[np.int64]
    file_bytes: NDArray[np.int64]
    modified_ns: NDArray[np.int64]
    """With the size, this tells whether a file is still the one whose header was read."""
    offsets: NDArray[np.int64]
    checksums: NDArray[np.int64]
    """-1 where it is not known."""
    is_copyable: NDArray[np.bool_]
    """Whether the bytes can be copied out of the file as they are."""

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def total_samples(self) -> int:
        """Of all files."""
        return int(self.num_samples.sum())

    def check_unchanged(self, batch: int) -> None:
        """Refuse a file that is not the one whose header was read."""
        path = self.paths[batch]
        try:
            found = path.stat()
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
        if (found.st_size, found.st_mtime_ns) != (self.file_bytes[batch], self.modified_ns[batch]):
            raise DataError(f"{path}: was changed while it was merged; merge again when nobody writes to it")


def find_batches(
    intermediate_dir: Path, names: ArrayNames | None = None
) -> tuple[Batches, tuple[int, ...] | None]:
    """The batch files of a folder, and how many samples each input file gave, if its manifest tells.

    The manifest says which files there are and in which order; without one they are taken as their names are numbered.
    """
    if not (intermediate_dir / MANIFEST_NAME).exists():
        return read_batches(list_batch_files(intermediate_dir), names), None
    manifest = Manifest.read(intermediate_dir)
    if not manifest.batches:
        raise DataError(
            f"{intermediate_dir}: its {MANIFEST_NAME} lists no batch files; run penstock prep again"
        )
    paths = [intermediate_dir / record.name for record in manifest.batches]
    batches = read_batches(paths, names or manifest.schema.names, manifest.batches)
    source_samples = tuple(record.num_samples for record in manifest.inputs)
    return batches, source_samples if sum(source_samples) == batches.total_samples else None


def list_batch_files(intermediate_dir: Path) -> list[Path]:
    """The batch files of a folder in the order of their numbers."""
    if not intermediate_dir.is_dir():
        raise DataError(f"{intermediate_dir}: is no folder; intermediate_dir is where batch files are")
    found = [
        path
        for suffix in SUFFIXES.values()
        for path in intermediate_dir.glob(f"batch_*{suffix}")
        if path.is_file()
    ]
    if not found:
        raise DataError(
            f"{intermediate_dir}: has no batch files (batch_*.batch or batch_*.npz); run penstock prep first"
        )
    return sorted(found, key=lambda path: natural_order(path.name))


def natural_order(name: str) -> list[tuple[int, str]]:
    """So that batch_9 comes before batch_10.

    >>> sorted(["batch_10.npz", "batch_9.npz"], key=natural_order)
    ['batch_9.npz', 'batch_10.npz']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def read_batches(
    paths: Sequence[Path], names: ArrayNames | None = None, records: Sequence[BatchRecord] = ()
) -> Batches:
    """Read the headers of all files; the first file says what arrays there are, and all others must agree.

    `records` is what a manifest says of the files: one that is another is refused.
    """
    first = read_header(paths[0])
    schema = first.schema(names)
    shape = len(paths), len(schema.arrays)
    tables = Batches(
        schema=schema,
        paths=tuple(paths),
        num_samples=np.zeros(len(paths), np.int64),
        file_bytes=np.zeros(len(paths), np.int64),
        modified_ns=np.zeros(len(paths), np.int64),
        offsets=np.zeros(shape, np.int64),
        checksums=np.full(shape, _NO_CHECKSUM, np.int64),
        is_copyable=np.zeros(shape, np.bool_),
    )
    for batch, path in enumerate(paths):
        header, modified_ns = read_header(path), path.stat().st_mtime_ns
        if records and header.record != records[batch]:
            raise DataError(f"{path}: is not the file that {MANIFEST_NAME} lists; run penstock prep again")
        _fill(tables, batch, header, modified_ns)
    return tables


def _fill(tables: Batches, batch: int, header: BatchHeader, modified_ns: int) -> None:
    difference = tables.schema.difference(header.schema(tables.schema.names))
    if difference:
        raise DataError(
            f"{header.path}: {difference}, unlike in {tables.paths[0].name}; all batch files of a merge must agree: "
            "write it again or take it away"
        )
    tables.num_samples[batch] = header.num_samples
    tables.file_bytes[batch] = header.num_bytes
    tables.modified_ns[batch] = modified_ns
    for column, spec in enumerate(tables.schema.arrays):
        array = header.array(spec.name)
        tables.offsets[batch, column] = array.offset
        tables.is_copyable[batch, column] = array.is_copyable
        if array.checksum is not None:
            tables.checksums[batch, column] = array.checksum


def fingerprint_facts(batches: Batches) -> list[Any]:
    """What makes two merges of the same folder differ, as far as the batch files go."""
    return [
        batches.schema.as_document(),
        [path.name for path in batches.paths],
        batches.num_samples.tolist(),
        batches.file_bytes.tolist(),
        batches.modified_ns.tolist(),
        batches.checksums.tolist(),
    ]
