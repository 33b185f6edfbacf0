"""What is in batch files: one, or all of a folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from penstock.config.errors import DataError
from penstock.store.batch_file.files import is_pickled, read_array, read_header
from penstock.store.batch_file.header import BatchHeader, BatchRecord, StoredArray
from penstock.store.batch_file.reading import check_values
from penstock.store.batch_file.values import Values
from penstock.store.contents.contents import CHUNK_BYTES, ArrayContents, Contents, Interval, Part, arrays_of
from penstock.store.contents.file_rows import FileArray
from penstock.store.manifest import MANIFEST_NAME, Manifest, is_unfinished
from penstock.store.merge.source.batch_paths import list_batch_files
from penstock.store.merge.source.batches import Batches, no_batches, read_batches
from penstock.store.schema import LABELS, MASKS, ArrayNames

_NO_MANIFEST = f"there is no {MANIFEST_NAME}, so these may not be all; penstock prep writes it at its end"
_UNFINISHED = (
    "the preparation has not finished: these are not all; run penstock prep, which goes on with them"
)


@dataclass(frozen=True, slots=True)
class BatchBlock:
    """A block: one batch file. Arrays that are read to their end are checked."""

    path: Path
    num_rows: int

    @property
    def held_bytes(self) -> int:
        """One chunk, or all of an array that must be decoded."""
        arrays = read_header(self.path).arrays.values()
        decoded = [array.num_bytes + array.array_bytes for array in arrays if not array.is_copyable]
        return max([CHUNK_BYTES, *decoded])

    def chunks(self, intervals: Sequence[Interval]) -> Iterator[tuple[str, Values]]:
        """Values of one array after the other."""
        header = read_header(self.path)
        for array in header.arrays.values():
            read = _stored if array.is_copyable else _decoded
            yield from ((array.name, values) for values in read(header, array, intervals))


def _decoded(header: BatchHeader, array: StoredArray, intervals: Sequence[Interval]) -> Iterator[Values]:
    """Samples of an array that must be had as a whole."""
    values = read_array(header, array)
    return (values[first:end] for first, end in intervals)


def _stored(header: BatchHeader, array: StoredArray, intervals: Sequence[Interval]) -> Iterator[Values]:
    """Samples of an array that lies in the file as it is."""
    place = FileArray(header.path, array.name, array.dtype, array.shape, array.offset)
    for first, end in intervals:
        checksum = 0
        for values in place.chunks(first, end):
            checksum = crc32(values.reshape(-1).view(np.uint8).data, checksum)
            yield values
        if end - first == header.num_samples:
            check_values(header, array, checksum)


def batch_contents(path: Path) -> Contents:
    """One batch file; only its header is read."""
    _refuse_pickled(path)
    header = read_header(path)
    names = _names_beside(path)
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
        parts=(Part(None, arrays, [BatchBlock(path, header.num_samples)]),),
    )


def batch_folder_contents(folder: Path) -> Contents:
    """All batch files of a folder, which must agree; only headers are read."""
    manifest = Manifest.read(folder) if (folder / MANIFEST_NAME).exists() else None
    records = manifest.batches if manifest else ()
    paths = [folder / record.name for record in records] if manifest else list_batch_files(folder)
    if not paths:
        raise no_batches(folder, manifest) if manifest else DataError(f"{folder}: has no batch files")
    batches = _read_batches(paths, manifest.schema.names if manifest else None, records)
    schema = batches.schema.with_columns(manifest.schema) if manifest else batches.schema
    blocks = [BatchBlock(path, rows) for path, rows in zip(paths, batches.num_samples.tolist(), strict=True)]
    facts: dict[str, int | str] = {"samples": batches.total_samples, "batch_files": len(paths)}
    if manifest:
        facts["input_files"] = len(manifest.inputs)
    return Contents(
        kind="batch files",
        facts={**facts, "bytes_on_disk": int(batches.file_bytes.sum())},
        heads=schema.heads,
        masked_heads=schema.masked_heads,
        parts=(Part(None, arrays_of(schema, batches.total_samples), blocks),),
        warnings=() if manifest else (_UNFINISHED if is_unfinished(folder) else _NO_MANIFEST,),
    )


def _read_batches(paths: Sequence[Path], names: ArrayNames | None, records: Sequence[BatchRecord]) -> Batches:
    try:
        return read_batches(paths, names, records)
    except DataError:
        for path in paths:
            _refuse_pickled(path)
        raise


def _names_beside(path: Path) -> ArrayNames:
    """How arrays are called where the file lies; without a manifest that can be read, as usual."""
    try:
        return Manifest.read(path.parent).schema.names
    except DataError:
        return ArrayNames()


def _refuse_pickled(path: Path) -> None:
    if is_pickled(path):
        raise DataError(
            f"{path}: holds pickled samples, as batch files of old do, and is not unpickled to look at it; "
            "merge files that you trust with penstock merge --allow-pickle and look at the store"
        )
