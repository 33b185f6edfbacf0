"""Pass 1: what the headers of all batch files say, in a few bytes for each array of each file; and their samples."""

import hashlib
import json
import math
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.prep.merge.options import DeclaredTypes
from penstock.readers.batch_files import SUFFIXES, is_pickled, load_batch, read_array, read_header
from penstock.readers.batch_layouts import BatchHeader, StoredArray, Values
from penstock.readers.pickled_samples import PICKLE_SUFFIXES, pickled_schema, refuse_pickle
from penstock.readers.store_manifest import (
    MANIFEST_NAME,
    BatchRecord,
    DamagedFile,
    Manifest,
    MissingFile,
    check_finished,
)
from penstock.readers.store_schema import ArrayNames, StoreSchema
from penstock.runtime.checksums import array_checksum, joined_checksum

Rows = NDArray[np.uint8]
"""Samples of one array as bytes: (samples, bytes of a sample)."""

BUFFER_BYTES = MIB
"""Read at a time: small enough to be in the processor's cache when its checksum is taken."""
_SMALL_FILE_BYTES = 4 * MIB
"""A file of no more is read at once: a call for each of many small arrays takes longer."""
_PREFIX = "batch_"
_SUFFIXES = (*SUFFIXES.values(), ".npy", *PICKLE_SUFFIXES)
_PICKLED = "pickled"


class BatchPaths(Sequence[Path]):
    """Files of a folder. Only names are kept: a Path takes eight times the memory, and is made when it is needed."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder, self._names = folder, tuple(names)

    @overload
    def __getitem__(self, index: int) -> Path: ...

    @overload
    def __getitem__(self, index: slice) -> "BatchPaths": ...

    def __getitem__(self, index: int | slice) -> "Path | BatchPaths":
        if isinstance(index, slice):
            return BatchPaths(self._folder, self._names[index])
        return self._folder / self._names[index]

    def __len__(self) -> int:
        return len(self._names)


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
    offsets: NDArray[np.int64]
    checksums: NDArray[np.int64]
    is_copyable: NDArray[np.bool_]
    """Whether the bytes can be copied out of the file as they are."""

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def result_schema(self) -> StoreSchema:
        """Of a store: all arrays but what keeps samples together."""
        return self.schema.without(self.schema.names.groups)

    @property
    def total_samples(self) -> int:
        return int(self.num_samples.sum())

    @cached_property
    def row_bytes(self) -> tuple[int, ...]:
        """Of a sample, for each array."""
        return tuple(spec.row_bytes for spec in self.schema.arrays)

    @cached_property
    def first_rows(self) -> NDArray[np.int64]:
        """Of each batch: how many samples come before; one more for the end."""
        return np.concatenate([[0], np.cumsum(self.num_samples)])

    @cached_property
    def digest(self) -> str:
        """Tells the samples of one merge from those of another; not where, when and how they were stored."""
        digest = hashlib.blake2b(json.dumps(self.schema.as_document()).encode(), digest_size=16)
        digest.update(self.num_samples.tobytes())
        digest.update(self.checksums.tobytes())
        return digest.hexdigest()

    @property
    def content_checksums(self) -> list[int]:
        """Of the samples of each batch file, from what its header says of the arrays."""
        return [
            zlib.crc32(checksums.tobytes(), num_samples)
            for checksums, num_samples in zip(self.checksums, self.num_samples.tolist(), strict=True)
        ]


@contextmanager
def adding_cure(intermediate_dir: Path) -> Iterator[None]:
    """Say of a damaged file how its folder gets it back: penstock prep writes missing files again.

    It looks at headers and not at values, so that a damaged file has to go first.
    """
    try:
        yield
    except DamagedFile as error:
        if not (intermediate_dir / MANIFEST_NAME).exists():
            raise
        prepare = "run penstock prep, which writes it again"
        cure = prepare if isinstance(error, MissingFile) else f"delete that file and {prepare}"
        raise type(error)(error.problem, cure) from error


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
    """The error for a preparation that found nothing."""
    return DataError(
        f"{intermediate_dir}: has no samples: penstock prep found none in {len(manifest.inputs):,} input files, or "
        "left them out; its log.jsonl tells why"
    )


def list_batch_files(intermediate_dir: Path) -> BatchPaths:
    """The batch files of a folder in the order of their numbers; no number may be there twice.

    Where there are files called batch_*, all others are something else; else all that may be batch files are.
    """
    if not intermediate_dir.is_dir():
        raise DataError(f"{intermediate_dir}: is no folder; intermediate_dir is where batch files are")
    with os.scandir(intermediate_dir) as entries:
        found = [
            entry.name
            for entry in entries
            if not entry.name.startswith(".") and entry.name.endswith(_SUFFIXES) and entry.is_file()
        ]
    if not found:
        raise DataError(
            f"{intermediate_dir}: has no batch files, whose names end in {', '.join(_SUFFIXES)}; run penstock prep "
            "first"
        )
    # Numbers are padded so that batch_9 comes before batch_10.
    found.sort(key=lambda name: re.sub(r"\d+", lambda number: number[0].zfill(20), name))
    names = [name for name in found if name.startswith(_PREFIX)] or found
    for name, following in pairwise(names):
        if os.path.splitext(name)[0] == os.path.splitext(following)[0]:
            raise DataError(
                f"{intermediate_dir / following}: is also there as {name}; take away the one that is not to be merged"
            )
    return BatchPaths(intermediate_dir, names)


def read_batches(
    paths: Sequence[Path],
    names: ArrayNames | None = None,
    records: Sequence[BatchRecord] = (),
    allow_pickle: bool = False,
    types: DeclaredTypes | None = None,
) -> Batches:
    """Read the headers of all files; the first file says what arrays there are, and all others must agree.

    `records` is what a manifest says of the files: one that is another is refused. `types` are those that old samples
    get, and that arrays must have.
    """
    types = types or DeclaredTypes()
    _stat(paths[0])
    if allow_pickle and is_pickled(paths[0]):
        schema = types.applied(pickled_schema(paths[0], names))
    else:
        schema = _header(paths[0], None, allow_pickle).schema(names)
        types.check(schema, paths[0])
    num_files, shape = len(paths), (len(paths), len(schema.arrays))
    tables = Batches(
        schema,
        paths,
        num_samples=np.zeros(num_files, np.int64),
        file_bytes=np.zeros(num_files, np.int64),
        modified_ns=np.zeros(num_files, np.int64),
        is_pickled=np.zeros(num_files, np.bool_),
        offsets=np.zeros(shape, np.int64),
        checksums=np.zeros(shape, np.int64),
        is_copyable=np.zeros(shape, np.bool_),
    )
    for batch, path in enumerate(paths):
        tables.modified_ns[batch] = _stat(path).st_mtime_ns
        header = _header(path, schema, allow_pickle)
        if records and header.record != records[batch]:
            raise DataError(f"{path}: is not the file that {MANIFEST_NAME} lists; run penstock prep again")
        difference = schema.difference(header.schema(schema.names))
        if difference:
            raise DataError(
                f"{path}: {difference}, unlike in {paths[0].name}; all batch files of a merge must agree: "
                "write it again or take it away"
            )
        tables.num_samples[batch] = header.num_samples
        tables.file_bytes[batch] = header.num_bytes
        tables.is_pickled[batch] = header.layout == _PICKLED
        arrays = [header.array(spec.name) for spec in schema.arrays]
        tables.offsets[batch] = [array.offset for array in arrays]
        tables.is_copyable[batch] = [array.is_copyable for array in arrays]
        tables.checksums[batch] = [array.checksum or 0 for array in arrays]
    return tables


def _header(path: Path, schema: StoreSchema | None, allow_pickle: bool) -> BatchHeader:
    """Of a batch file; an old one has none, and is read instead, if that is allowed."""
    if not allow_pickle or not is_pickled(path):
        header = read_header(path)
        if header.has_objects:
            raise refuse_pickle(path)
        return header
    arrays = load_batch(path, allow_pickle=True, schema=schema)
    stored = {
        name: StoredArray(name, array.dtype, array.shape, 0, 0, _PICKLED, array_checksum(array))
        for name, array in arrays.items()
    }
    return BatchHeader(path, _PICKLED, path.stat().st_size, stored)


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DataError:
    """Says that it is a batch file that cannot be read, and not the store that cannot be written."""
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"{path}: is missing")
    return DataError(f"{path}: cannot be read: {error.strerror or error}")


class BatchReader:
    """Reads the arrays of a batch file, each from its first sample to its last, and checks them on the way.

    What lies in the file as it is comes through one buffer of a few megabytes. What is compressed is decoded as a
    whole, and kept until another array is asked for, or with `keep_decoded` until the end.
    """

    def __init__(self, batches: Batches, batch: int, keep_decoded: bool = False) -> None:
        self.path: Path = batches.paths[batch]
        self.num_samples = int(batches.num_samples[batch])
        self._batches, self._batch, self._keep_decoded = batches, batch, keep_decoded
        self._file_bytes = int(batches.file_bytes[batch])
        self._offsets: list[int] = batches.offsets[batch].tolist()
        self._is_copyable: list[bool] = batches.is_copyable[batch].tolist()
        self._buffer = np.empty(0, np.uint8)
        self._checksums: dict[int, int] = {}
        self.last_checksum: int | None = None
        """Of the rows that were read last, where it is known."""
        self._decoded: dict[int, Rows] = {}
        found = _stat(self.path)
        if (found.st_size, found.st_mtime_ns) != (self._file_bytes, batches.modified_ns[batch]):
            raise DataError(
                f"{self.path}: was changed while it was merged; merge again when nobody writes to it"
            )
        try:
            self._source = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def chunks(self, column: int) -> Iterator[tuple[int, Rows]]:
        """All samples of an array, some at a time, each time with the number of the first."""
        step = max(1, BUFFER_BYTES // max(1, self._batches.row_bytes[column]))
        for first in range(0, self.num_samples, step):
            yield first, self.rows(column, first, min(step, self.num_samples - first))

    def rows(self, column: int, first: int, count: int) -> Rows:
        """The next samples of an array, valid until more are asked for."""
        if not self._is_copyable[column]:
            self.last_checksum = None
            return self._decode(column)[first : first + count]
        row_bytes = self._batches.row_bytes[column]
        content = self._read(self._offsets[column] + first * row_bytes, count * row_bytes)
        crc = self.last_checksum = zlib.crc32(content.data)
        self._checksums[column] = joined_checksum(self._checksums.get(column, 0), crc, len(content))
        return content.reshape(count, row_bytes)

    def _read(self, offset: int, num_bytes: int) -> Rows:
        if self._file_bytes <= _SMALL_FILE_BYTES:
            if not len(self._buffer):
                self._buffer = np.empty(self._file_bytes, np.uint8)
                self._fill(self._buffer.data, 0)
            return self._buffer[offset : offset + num_bytes]
        if len(self._buffer) < num_bytes:
            self._buffer = np.empty(num_bytes, np.uint8)
        self._fill(self._buffer[:num_bytes].data, offset)
        return self._buffer[:num_bytes]

    def _fill(self, content: memoryview, offset: int) -> None:
        while content:
            try:
                count = os.preadv(self._source, [content], offset)
            except OSError as error:
                raise _unreadable(self.path, error) from error
            if not count:
                raise DamagedFile(f"{self.path}: ends before the last of its arrays")
            content, offset = content[count:], offset + count

    def _decode(self, column: int) -> Rows:
        if column in self._decoded:
            return self._decoded[column]
        schema = self._batches.schema
        if self._batches.is_pickled[self._batch]:  # old samples come all at once
            arrays = load_batch(self.path, allow_pickle=True, schema=schema)
            self._decoded = {index: _as_rows(arrays[spec.name]) for index, spec in enumerate(schema.arrays)}
        else:
            if not self._keep_decoded:
                self._decoded.clear()
            header = read_header(self.path)
            values = read_array(header, header.array(schema.arrays[column].name))
            self._decoded[column] = _as_rows(values)
        return self._decoded[column]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._source)
        for column, crc in self._checksums.items() if kind is None else ():
            expected = int(self._batches.checksums[self._batch, column])
            if expected != crc:
                raise DamagedFile(
                    f"{self.path}: array '{self._batches.schema.arrays[column].name}' is damaged: its checksum is "
                    f"{crc:08x}, not {expected:08x}",
                    "write the file again",
                )


def _as_rows(values: Values) -> Rows:
    row_bytes = values.itemsize * math.prod(values.shape[1:])
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(len(values), row_bytes)
