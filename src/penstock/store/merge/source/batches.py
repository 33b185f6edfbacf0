"""Pass 1: what the headers of all batch files say, in a few bytes for each array of each file."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.batch_file.files import is_pickled, load_batch, read_header
from penstock.store.batch_file.header import BatchHeader, BatchRecord, StoredArray
from penstock.store.batch_file.values import values_checksum
from penstock.store.damage import MissingFile
from penstock.store.legacy import legacy_schema, refuse_pickle
from penstock.store.manifest import MANIFEST_NAME, Manifest, check_finished
from penstock.store.merge.source.batch_paths import BatchPaths, list_batch_files
from penstock.store.merge.source.declared_types import DeclaredTypes
from penstock.store.schema import ArrayNames, StoreSchema

_PICKLED = "pickled"


@dataclass(frozen=True)
class Batches:
    """All batch files of a merge, in order. Rows of the tables are files, columns are the arrays of the schema."""

    schema: StoreSchema
    paths: Sequence[Path]
    num_samples: NDArray[np.int64]
    file_bytes: NDArray[np.int64]
    modified_ns: NDArray[np.int64]
    """With the size, this tells whether a file is still the one whose header was read."""
    is_pickled: NDArray[np.bool_]
    """Whether a file is one of old, with pickled samples."""
    offsets: NDArray[np.int64]
    checksums: NDArray[np.int64]
    is_copyable: NDArray[np.bool_]
    """Whether the bytes can be copied out of the file as they are."""

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def total_samples(self) -> int:
        """Of all files."""
        return int(self.num_samples.sum())

    @cached_property
    def row_bytes(self) -> tuple[int, ...]:
        """Of a sample, for each array."""
        return tuple(spec.row_bytes for spec in self.schema.arrays)

    def check_unchanged(self, batch: int) -> None:
        """Refuse a file that is not the one whose header was read."""
        path = self.paths[batch]
        try:
            found = path.stat()
        except OSError as error:
            raise unreadable(path, error) from error
        if (found.st_size, found.st_mtime_ns) != (self.file_bytes[batch], self.modified_ns[batch]):
            raise DataError(f"{path}: was changed while it was merged; merge again when nobody writes to it")


def unreadable(path: Path, error: OSError) -> DataError:
    """Says that it is a batch file that cannot be read, and not the store that cannot be written."""
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"{path}: is missing")
    return DataError(f"{path}: cannot be read: {error.strerror or error}")


def find_batches(
    intermediate_dir: Path,
    names: ArrayNames | None = None,
    allow_pickle: bool = False,
    types: DeclaredTypes | None = None,
) -> tuple[Batches, tuple[int, ...] | None]:
    """The batch files of a folder, and how many samples each input file gave, if its manifest tells.

    The manifest says which files there are and in which order; without one they are taken as their names are numbered,
    unless a preparation has begun there and not ended.
    """
    check_finished(intermediate_dir)
    if not (intermediate_dir / MANIFEST_NAME).exists():
        paths = list_batch_files(intermediate_dir)
        return read_batches(paths, names, allow_pickle=allow_pickle, types=types), None
    manifest = Manifest.read(intermediate_dir)
    if not manifest.batches:
        raise no_batches(intermediate_dir, manifest)
    paths = BatchPaths(intermediate_dir, [record.name for record in manifest.batches])
    batches = read_batches(paths, names or manifest.schema.names, manifest.batches, allow_pickle, types)
    batches = replace(batches, schema=batches.schema.with_columns(manifest.schema))
    source_samples = tuple(record.num_samples for record in manifest.inputs)
    return batches, source_samples if sum(source_samples) == batches.total_samples else None


def no_batches(intermediate_dir: Path, manifest: Manifest) -> DataError:
    """Of a preparation of which nothing came."""
    return DataError(
        f"{intermediate_dir}: has no samples: penstock prep found none in {len(manifest.inputs):,} input files, or "
        "left them out; its log.jsonl tells why"
    )


def read_batches(
    paths: Sequence[Path],
    names: ArrayNames | None = None,
    records: Sequence[BatchRecord] = (),
    allow_pickle: bool = False,
    types: DeclaredTypes | None = None,
) -> Batches:
    """Read the headers of all files; the first file says what arrays there are, and all others must agree.

    `records` is what a manifest says of the files: one that is another is refused. `types` are those that samples of
    old get, and that arrays must have.
    """
    _modified_ns(paths[0])
    schema = _first_schema(paths[0], names, allow_pickle, types or DeclaredTypes())
    tables = _empty(schema, paths)
    for batch, path in enumerate(paths):
        modified_ns = _modified_ns(path)
        header = _header(path, schema, allow_pickle)
        if records and header.record != records[batch]:
            raise DataError(f"{path}: is not the file that {MANIFEST_NAME} lists; run penstock prep again")
        _fill(tables, batch, header, modified_ns)
    return tables


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise unreadable(path, error) from error


def _first_schema(
    path: Path, names: ArrayNames | None, allow_pickle: bool, types: DeclaredTypes
) -> StoreSchema:
    """What the first file says of the arrays of all; samples of old get their types here."""
    if allow_pickle and is_pickled(path):
        return types.applied(legacy_schema(path, names))
    schema = _header(path, None, allow_pickle).schema(names)
    types.check(schema, path)
    return schema


def _header(path: Path, schema: StoreSchema | None, allow_pickle: bool) -> BatchHeader:
    """Of a batch file; one of old has none, and is read instead, if that is allowed."""
    if not allow_pickle or not is_pickled(path):
        header = read_header(path)
        if header.has_objects:
            raise refuse_pickle(path)
        return header
    arrays = load_batch(path, allow_pickle=True, schema=schema)
    stored = {
        name: StoredArray(name, array.dtype, array.shape, 0, 0, _PICKLED, values_checksum(array))
        for name, array in arrays.items()
    }
    return BatchHeader(path, _PICKLED, path.stat().st_size, stored)


def _empty(schema: StoreSchema, paths: Sequence[Path]) -> Batches:
    num_files, shape = len(paths), (len(paths), len(schema.arrays))
    return Batches(
        schema=schema,
        paths=paths,
        num_samples=np.zeros(num_files, np.int64),
        file_bytes=np.zeros(num_files, np.int64),
        modified_ns=np.zeros(num_files, np.int64),
        is_pickled=np.zeros(num_files, np.bool_),
        offsets=np.zeros(shape, np.int64),
        checksums=np.zeros(shape, np.int64),
        is_copyable=np.zeros(shape, np.bool_),
    )


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
    tables.is_pickled[batch] = header.layout == _PICKLED
    arrays = [header.array(spec.name) for spec in tables.schema.arrays]
    tables.offsets[batch] = [array.offset for array in arrays]
    tables.is_copyable[batch] = [array.is_copyable for array in arrays]
    tables.checksums[batch] = [array.checksum or 0 for array in arrays]


def digest_of(batches: Batches) -> bytes:
    """What tells the samples of one merge from those of another; not where, when and how they were stored."""
    digest = hashlib.blake2b(json.dumps(batches.schema.as_document()).encode(), digest_size=16)
    digest.update(batches.num_samples.tobytes())
    digest.update(batches.checksums.tobytes())
    return digest.digest()
