"""Pass 1: what the headers of all batch files say, in a few bytes for each array of each file; and their samples."""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.prep.merge.merge_options import DeclaredTypes, MergeOptions
from penstock.readers.batch_files import SUFFIXES, is_pickled, load_batch, read_array, read_header
from penstock.readers.batch_layouts import BatchArray, BatchHeader
from penstock.readers.pickled_samples import PICKLE_SUFFIXES, pickled_schema
from penstock.readers.store_schema import (
    MANIFEST_NAME,
    BatchRecord,
    DamagedFile,
    MissingFile,
    StoreManifest,
    StoreSchema,
    check_finished,
)
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


@dataclass(frozen=True)
class Batches:
    """All batch files of a merge, in order. Rows of the tables are files, columns are the arrays of the schema."""

    schema: StoreSchema
    folder: Path
    names: tuple[str, ...]
    """Of the files. A Path takes eight times the memory, and is made when it is needed."""
    num_samples: NDArray[np.int64]
    file_bytes: NDArray[np.int64]
    modified_ns: NDArray[np.int64]
    """With the size, this shows whether a file is still the one whose header was read."""
    is_pickled: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    checksums: NDArray[np.int64]
    is_copyable: NDArray[np.bool_]
    """Whether the bytes can be copied out of the file as they are."""
    source_samples: NDArray[np.int64] | None = None
    """How many samples each input file gave; None: unknown, and each batch file counts as one."""

    def __len__(self) -> int:
        return len(self.names)

    def path(self, batch: int) -> Path:
        return self.folder / self.names[batch]

    @cached_property
    def result_schema(self) -> StoreSchema:
        """Of a store: all arrays but what keeps samples together."""
        return self.schema.without(self.schema.names.groups)

    @property
    def total_samples(self) -> int:
        return int(self.num_samples.sum())

    @cached_property
    def row_bytes(self) -> tuple[int, ...]:
        return tuple(spec.row_bytes for spec in self.schema.arrays)

    @cached_property
    def first_rows(self) -> NDArray[np.int64]:
        """Of each batch: how many samples come before; one more for the end."""
        return np.concatenate([[0], np.cumsum(self.num_samples)])

    @cached_property
    def digest(self) -> str:
        """Of the samples, not of where, when and how they were stored."""
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
    """Penstock prep writes missing files again. It looks at headers alone, so a damaged file has to go first."""
    try:
        yield
    except DamagedFile as error:
        if not (intermediate_dir / MANIFEST_NAME).exists():
            raise
        prepare = "run penstock prep, which writes it again"
        cure = prepare if isinstance(error, MissingFile) else f"delete that file and {prepare}"
        raise type(error)(error.problem, cure) from error


def find_batches(intermediate_dir: Path, options: MergeOptions | None = None) -> Batches:
    check_finished(intermediate_dir)
    return read_folder(intermediate_dir, options)[0]


def read_folder(folder: Path, options: MergeOptions | None = None) -> tuple[Batches, StoreManifest | None]:
    """The files that the manifest of a folder lists; without one they are taken as their names are numbered."""
    options = options or MergeOptions()
    if not (folder / MANIFEST_NAME).exists():
        return read_batches(folder, list_batch_files(folder), options), None
    manifest = StoreManifest.read(folder)
    if not manifest.batches:
        raise DataError(
            f"{folder}: has no samples: penstock prep found none in {len(manifest.inputs):,} input files, or "
            "left them out; its log.jsonl tells why"
        )
    options = replace(options, names=options.names or manifest.schema.names)
    batches = read_batches(folder, [record.name for record in manifest.batches], options, manifest.batches)
    source_samples = np.array([record.num_samples for record in manifest.inputs], np.int64)
    if source_samples.sum() == batches.total_samples:
        batches = replace(batches, source_samples=source_samples)
    return replace(batches, schema=batches.schema.with_columns(manifest.schema)), manifest


def list_batch_files(folder: Path) -> list[str]:
    """Files called batch_*, or else all that may be batch files, in the order of their numbers."""
    if not folder.is_dir():
        raise DataError(f"{folder}: is no folder; intermediate_dir is where batch files are")
    with os.scandir(folder) as entries:
        found = [
            entry.name
            for entry in entries
            if not entry.name.startswith(".") and entry.name.endswith(_SUFFIXES) and entry.is_file()
        ]
    if not found:
        raise DataError(
            f"{folder}: has no batch files, whose names end in {', '.join(_SUFFIXES)}; run penstock prep first"
        )
    # Numbers are padded so that batch_9 comes before batch_10.
    found.sort(key=lambda name: re.sub(r"\d+", lambda number: number[0].zfill(20), name))
    names = [name for name in found if name.startswith(_PREFIX)] or found
    for name, following in pairwise(names):
        if os.path.splitext(name)[0] == os.path.splitext(following)[0]:
            raise DataError(
                f"{folder / following}: is also there as {name}; take away the one that is not to be merged"
            )
    return names


def read_batches(
    folder: Path, files: Sequence[str], options: MergeOptions, records: Sequence[BatchRecord] = ()
) -> Batches:
    """The first file says what arrays there are, and all others must agree, also with the `records` of a manifest."""
    types, allow_pickle = options.types or DeclaredTypes(), options.allow_pickle
    first = folder / files[0]
    _stat(first)
    if allow_pickle and is_pickled(first):
        schema = types.applied(pickled_schema(first, options.names))
    else:
        schema = _header(first, None, allow_pickle).schema(options.names)
        types.check(schema, first)
    num_files, shape = len(files), (len(files), len(schema.arrays))
    tables = Batches(
        schema,
        folder,
        tuple(files),
        num_samples=np.zeros(num_files, np.int64),
        file_bytes=np.zeros(num_files, np.int64),
        modified_ns=np.zeros(num_files, np.int64),
        is_pickled=np.zeros(num_files, np.bool_),
        offsets=np.zeros(shape, np.int64),
        checksums=np.zeros(shape, np.int64),
        is_copyable=np.zeros(shape, np.bool_),
    )
    for batch in range(num_files):
        path = tables.path(batch)
        tables.modified_ns[batch] = _stat(path).st_mtime_ns
        header = _header(path, schema, allow_pickle)
        if records and header.record != records[batch]:
            raise DataError(f"{path}: is not the file that {MANIFEST_NAME} lists; run penstock prep again")
        difference = schema.difference(header.schema(schema.names))
        if difference:
            raise DataError(
                f"{path}: {difference}, unlike in {files[0]}; all batch files of a merge must agree: "
                "write it again or take it away"
            )
        tables.num_samples[batch] = header.num_samples
        tables.file_bytes[batch] = header.num_bytes
        tables.is_pickled[batch] = header.layout == _PICKLED
        arrays = [header.arrays[spec.name] for spec in schema.arrays]
        tables.offsets[batch] = [array.offset for array in arrays]
        tables.is_copyable[batch] = [array.is_copyable for array in arrays]
        tables.checksums[batch] = [array.checksum or 0 for array in arrays]
    return tables


def _header(path: Path, schema: StoreSchema | None, allow_pickle: bool) -> BatchHeader:
    """Of a batch file; an old one has none, and is read instead, if that is allowed."""
    if not allow_pickle or not is_pickled(path):
        return read_header(path)
    arrays = load_batch(path, allow_pickle=True, schema=schema)
    stored = {
        name: BatchArray(name, array.dtype, array.shape, 0, 0, _PICKLED, array_checksum(array))
        for name, array in arrays.items()
    }
    return BatchHeader(path, _PICKLED, path.stat().st_size, stored)


def _stat(path: Path) -> os.stat_result:
    with _reading(path):
        return path.stat()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Says that it is a batch file that cannot be read, and not the store that cannot be written."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFile(f"{path}: is missing") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


class BatchReader:
    """Reads the arrays of a batch file, each from its first sample to its last, and checks them on the way.

    What lies in the file as it is comes through one buffer of a few megabytes. What is compressed is decoded as a
    whole, and kept until another array is asked for, or with `keep_decoded` until the end.
    """

    def __init__(self, batches: Batches, batch: int, keep_decoded: bool = False) -> None:
        self.path = batches.path(batch)
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
        with _reading(self.path):
            self._source = os.open(self.path, os.O_RDONLY)

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
        offset, num_bytes = self._offsets[column] + first * row_bytes, count * row_bytes
        if self._file_bytes <= _SMALL_FILE_BYTES:
            if not len(self._buffer):
                self._buffer = np.empty(self._file_bytes, np.uint8)
                self._fill(self._buffer.data, 0)
            content = self._buffer[offset : offset + num_bytes]
        else:
            if len(self._buffer) < num_bytes:
                self._buffer = np.empty(num_bytes, np.uint8)
            content = self._buffer[:num_bytes]
            self._fill(content.data, offset)
        crc = self.last_checksum = zlib.crc32(content.data)
        self._checksums[column] = joined_checksum(self._checksums.get(column, 0), crc, num_bytes)
        return content.reshape(count, row_bytes)

    def _fill(self, content: memoryview, offset: int) -> None:
        with _reading(self.path):
            while content:
                count = os.preadv(self._source, [content], offset)
                if not count:
                    raise DamagedFile(f"{self.path}: ends before the last of its arrays")
                content, offset = content[count:], offset + count

    def _decode(self, column: int) -> Rows:
        if column not in self._decoded:
            specs = self._batches.schema.arrays
            if self._batches.is_pickled[self._batch]:  # old samples come all at once
                arrays = load_batch(self.path, allow_pickle=True, schema=self._batches.schema)
                decoded = {index: arrays[spec.name] for index, spec in enumerate(specs)}
            else:
                if not self._keep_decoded:
                    self._decoded.clear()
                header = read_header(self.path)
                decoded = {column: read_array(header, header.arrays[specs[column].name])}
            for index, values in decoded.items():
                rows = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
                self._decoded[index] = rows.reshape(self.num_samples, self._batches.row_bytes[index])
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
