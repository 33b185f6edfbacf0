"""What is in a batch file, a folder of batch files or a store: arrays from headers, values by a few megabytes.

`contents_of` finds out which of them a path is. A block is what is read at once: some rows of arrays that lie in files
as they are, a batch file, a row group. Callers choose blocks and rows; `Extremes` keeps the range of values.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.prep.merge.batches import read_folder
from penstock.prep.merge.staging import check_ended
from penstock.readers.batch_files import SUFFIXES, check_values, read_array, read_header
from penstock.readers.batch_layouts import NATIVE_MAGIC, Values
from penstock.readers.pickled_samples import PICKLE_SUFFIXES, PickledFile
from penstock.readers.store_schema import (
    BATCHES_KIND,
    LABELS,
    MANIFEST_NAME,
    MASKS,
    STORE_KIND,
    ArrayNames,
    StoreManifest,
    StoreSchema,
    is_unfinished,
    read_store,
)

_CHUNK_BYTES = 4 * MIB
"""Of one array, read at a time."""
_BEGINNING_BYTES = 256
"""The kind of a document stands at its beginning; it is known where the rest was lost."""
_NO_MANIFEST = f"there is no {MANIFEST_NAME}, so these may not be all; penstock prep writes it at its end"
_UNFINISHED = (
    "the preparation has not finished: these are not all; run penstock prep, which goes on with them"
)

Interval = tuple[int, int]
"""Samples of a block: the first, and the one after the last."""


@dataclass(frozen=True, slots=True)
class ArrayContents:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columns: tuple[str, ...] = ()
    """The names of the columns that its values came from; empty: unknown."""

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Part:
    """The samples of a split, or all samples of batch files."""

    split: str | None
    arrays: tuple[ArrayContents, ...]
    blocks: Sequence["Block"]

    @property
    def num_rows(self) -> int:
        return self.arrays[0].shape[0] if self.arrays else 0

    @property
    def row_bytes(self) -> int:
        return -(-sum(array.num_bytes for array in self.arrays) // max(1, self.num_rows))


@dataclass(frozen=True, slots=True)
class Contents:
    kind: str
    facts: Mapping[str, Any]
    """Ready for JSON."""
    heads: tuple[str, ...]
    masked_heads: tuple[str, ...]
    parts: tuple[Part, ...]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Extremes:
    """The smallest and largest value so far; NaN, and times that are none, are counted and left out."""

    min_value: Any = None
    max_value: Any = None
    num_nan: int = 0

    def add(self, values: Values) -> None:
        if not values.size or values.dtype.kind not in "biufmM":
            return
        lowest, highest = values.min(), values.max()
        if values.dtype.kind in "fmM" and np.isnan(lowest):
            is_nan = np.isnan(values)
            self.num_nan += int(np.count_nonzero(is_nan))
            values = values[~is_nan]
            if not values.size:
                return
            lowest, highest = values.min(), values.max()
        self.min_value = lowest if self.min_value is None else min(self.min_value, lowest)
        self.max_value = highest if self.max_value is None else max(self.max_value, highest)


def contents_of(path: Path) -> Contents | None:
    """What is in a path, without a value read; None where it is something else."""
    try:
        if path.is_file():
            is_named = path.suffix in (SUFFIXES["native"], *PICKLE_SUFFIXES) or (
                path.suffix == SUFFIXES["npz"] and path.name.startswith("batch_")
            )
            return _batch_file(path) if is_named or _beginning(path).startswith(NATIVE_MAGIC) else None
        if not path.is_dir():
            return None
        beginning = _beginning(path / MANIFEST_NAME)
        if f'"kind": "{STORE_KIND}"'.encode() in beginning:
            return store_contents(path)
        check_ended(path)
        names = (found.name for suffix in SUFFIXES.values() for found in path.glob(f"batch_*{suffix}"))
        is_prepared = f'"kind": "{BATCHES_KIND}"'.encode() in beginning
        return _batch_folder(path) if is_prepared or any(names) else None
    except PickledFile as error:
        raise DataError(
            f"{error.path}: holds pickled samples, as batch files of old do, and is not unpickled to look at it; "
            "merge files that you trust with penstock merge --allow-pickle and look at the store"
        ) from None


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_BEGINNING_BYTES)
    except OSError:
        return b""


def _arrays_of(schema: StoreSchema, num_rows: int) -> tuple[ArrayContents, ...]:
    return tuple(
        ArrayContents(spec.name, spec.dtype, spec.shape(num_rows), spec.columns) for spec in schema.arrays
    )


def read_samples(blocks: Sequence["Block"], rows: Sequence[int]) -> Iterator[tuple[int, str, Values]]:
    """The values of some samples, whose numbers are sorted, array by array; every block is read once."""
    first, start = 0, 0
    for block in blocks:
        end = bisect_left(rows, first + block.num_rows, start)
        if start < end:
            seen: Counter[str] = Counter()
            for name, values in block.chunks([(row - first, row - first + 1) for row in rows[start:end]]):
                yield rows[start + seen[name]], name, values
                seen[name] += 1
        first, start = first + block.num_rows, end


@dataclass(frozen=True, slots=True)
class _FileArray:
    """An array whose values lie in a file as they are."""

    path: Path
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def chunks(self, first: int, end: int) -> Iterator[Values]:
        """Samples from `first` up to `end`, a few megabytes at a time."""
        step = max(1, _CHUNK_BYTES // max(1, self.row_bytes))
        for start in range(first, end, step) if self.row_bytes else ():
            count = min(step, end - start)
            num_values = count * math.prod(self.shape[1:])
            offset = self.offset + start * self.row_bytes
            try:
                values = np.fromfile(self.path, self.dtype, num_values, offset=offset)
            except OSError as error:
                raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from error
            if len(values) != num_values:
                raise DataError(f"{self.path}: is cut short in array '{self.name}'; write it again")
            yield values.reshape(count, *self.shape[1:])


@dataclass(frozen=True, slots=True)
class _FileRows:
    """A block: some samples of arrays that lie in files as they are."""

    arrays: tuple[_FileArray, ...]
    first_row: int
    num_rows: int

    @property
    def held_bytes(self) -> int:
        return max([_CHUNK_BYTES, *(array.row_bytes for array in self.arrays)])

    def chunks(self, intervals: Sequence[Interval]) -> Iterator[tuple[str, Values]]:
        for array in self.arrays:
            for first, end in intervals:
                for values in array.chunks(self.first_row + first, self.first_row + end):
                    yield array.name, values


@dataclass(frozen=True, slots=True)
class _BatchBlock:
    """A block: one batch file. Arrays that are read to their end are checked."""

    path: Path
    num_rows: int

    @property
    def held_bytes(self) -> int:
        arrays = read_header(self.path).arrays.values()
        decoded = [array.num_bytes + array.array_bytes for array in arrays if not array.is_copyable]
        return max([_CHUNK_BYTES, *decoded])

    def chunks(self, intervals: Sequence[Interval]) -> Iterator[tuple[str, Values]]:
        header = read_header(self.path)
        for array in header.arrays.values():
            if not array.is_copyable:
                whole = read_array(header, array)
                yield from ((array.name, whole[first:end]) for first, end in intervals)
                continue
            stored = _FileArray(header.path, array.name, array.dtype, array.shape, array.offset)
            for first, end in intervals:
                checksum = 0
                for values in stored.chunks(first, end):
                    checksum = crc32(values.reshape(-1).view(np.uint8).data, checksum)
                    yield array.name, values
                if end - first == header.num_samples:
                    check_values(header, array, checksum)


@dataclass(frozen=True, slots=True)
class _PartGroup:
    """A block: a row group of a Parquet file, or a record batch of an Arrow file."""

    path: Path
    group: int
    num_rows: int
    schema: StoreSchema

    @property
    def held_bytes(self) -> int:
        """The group in the file and decoded, and one array of it."""
        return 3 * self.num_rows * self.schema.row_bytes

    def chunks(self, intervals: Sequence[Interval]) -> Iterator[tuple[str, Values]]:
        from penstock.prep.merge.arrow_parts import read_group

        with _reading(self.path):
            table = read_group(self.path, self.group)
        for spec in self.schema.arrays:
            for first, end in intervals:
                column: Any = table.column(spec.name).slice(first, end - first).combine_chunks()
                flat = column if spec.width is None else column.flatten()
                yield spec.name, flat.to_numpy(zero_copy_only=False)


Block: TypeAlias = _FileRows | _BatchBlock | _PartGroup
"""Samples that are reached at once; `held_bytes` is the maximum that is held while their values are read.

`chunks` gives the values of all arrays in some samples, each with the name of its array, decoded once.
"""


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or ["no reason is known"])[0].rstrip(".")
        raise DataError(f"{path}: cannot be read: {reason}; run penstock merge again") from error


def _batch_file(path: Path) -> Contents:
    header = read_header(path)
    try:
        names = StoreManifest.read(path.parent).schema.names
    except DataError:
        names = ArrayNames()
    compressions = sorted({array.compression for array in header.arrays.values()} - {"none"})
    arrays = tuple(ArrayContents(array.name, array.dtype, array.shape) for array in header.arrays.values())
    return Contents(
        kind=f"batch file ({header.layout})",
        facts={
            "samples": header.num_samples,
            "bytes_on_disk": header.num_bytes,
            "compression": ", ".join(compressions) or "none",
        },
        heads=names.heads(LABELS, header.arrays),
        masked_heads=names.heads(MASKS, header.arrays),
        parts=(Part(None, arrays, [_BatchBlock(path, header.num_samples)]),),
    )


def _batch_folder(folder: Path) -> Contents:
    batches, manifest = read_folder(folder)
    facts: dict[str, int] = {"samples": batches.total_samples, "batch_files": len(batches)}
    if manifest:
        facts["input_files"] = len(manifest.inputs)
    counts = batches.num_samples.tolist()
    blocks = [_BatchBlock(batches.path(batch), num_rows) for batch, num_rows in enumerate(counts)]
    return Contents(
        kind="batch files",
        facts={**facts, "bytes_on_disk": int(batches.file_bytes.sum())},
        heads=batches.schema.heads,
        masked_heads=batches.schema.masked_heads,
        parts=(Part(None, _arrays_of(batches.schema, batches.total_samples), blocks),),
        warnings=() if manifest else (_UNFINISHED if is_unfinished(folder) else _NO_MANIFEST,),
    )


def store_contents(folder: Path) -> Contents:
    document = read_store(folder)
    for item in document["files"]:
        path = folder / item["name"]
        found = path.stat().st_size if path.is_file() else None
        if found is None:
            raise DataError(f"{path}: is missing, but {MANIFEST_NAME} lists it; run penstock merge again")
        if found != item["num_bytes"]:
            raise DataError(
                f"{path}: has {found} bytes, but {MANIFEST_NAME} says {item['num_bytes']}; run penstock merge again"
            )
    options, schema = document["options"], StoreSchema.from_document(document["schema"])
    splits: dict[str, int] = document["splits"]
    facts = {
        "samples": sum(splits.values()),
        "splits": splits,
        "shuffled": f"with seed {options['seed']}" if options["shuffle"] else "no",
        "merged_batch_files": document["num_batches"],
        "files": len(document["files"]),
        "bytes_on_disk": sum(item["num_bytes"] for item in document["files"]),
    }
    parts = []
    for split, num_rows in splits.items():
        if options["target"] in ("parquet", "ipc"):
            from penstock.prep.merge.arrow_parts import group_sizes

            names = [item["name"] for item in document["files"] if item["name"].startswith(f"{split}/")]
            blocks: list[Block] = []
            for file in (folder / name for name in names):
                with _reading(file):
                    sizes = group_sizes(file)
                blocks += [_PartGroup(file, group, rows, schema) for group, rows in enumerate(sizes)]
        else:
            arrays = tuple(
                _FileArray(
                    folder / item["file"],
                    item["name"],
                    np.dtype(item["dtype"]),
                    tuple(item["shape"]),
                    item["offset"],
                )
                for item in document["arrays"]
                if item["split"] == split
            )
            step = max(1, _CHUNK_BYTES // max(1, schema.row_bytes))
            blocks = [
                _FileRows(arrays, first, min(step, num_rows - first)) for first in range(0, num_rows, step)
            ]
        parts.append(Part(split, _arrays_of(schema, num_rows), blocks))
    return Contents(f"store ({options['target']})", facts, schema.heads, schema.masked_heads, tuple(parts))
