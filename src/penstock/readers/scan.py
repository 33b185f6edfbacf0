"""From files to a stream of their rows: the scan before anybody decides how many bytes reading may take, then blocks.

A format gives `ScannedFiles` and a `BlockDecoder`; order, shards, positions and row ids are the same for all of them.
Formats whose decoder does the work of one core (text and records) are decoded by several threads at once: decoding
releases the interpreter, and a block is small, so that one that waits for its turn takes little.
"""

import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Protocol

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers import READERS
from penstock.readers.columns import declared_types
from penstock.readers.files import (
    HDF5_SUFFIXES,
    TYPE_OF_SUFFIX,
    ZIP_SUFFIX,
    DataFile,
    data_suffix,
    zip_refusal,
)
from penstock.readers.order import Blocks, EpochOrder, Piece, Shard
from penstock.readers.sections import ReadingSection
from penstock.readers.storage import open_input, read_at
from penstock.readers.stream import ROW_FIELD, Quarantine, RecordStream, StreamPosition, with_row_ids
from penstock.runtime.budget import Share
from penstock.runtime.world import max_decode_threads

ONE_SHARD = Shard()
_ENOUGH_WAITING = 2  # with so many batches waiting, one core is enough to decode the next
Fingerprint = tuple[str, int, int | None, int]
"""A file's name without its folder (data sets may move), its size in bytes, its rows where they are known, and
a checksum of the part of its content that is cheap to read."""
_END_BYTES = 64 * KIB
_MAY_BE_EMPTY = ("TFRecordDataset",)  # formats of which a file without records has no bytes at all


@dataclass(frozen=True, slots=True)
class ReadRequest:
    columns: Sequence[str] | None = None  # the columns, in this order; None: all
    text_columns: Sequence[str] = ()
    """Read as strings where the files do not say a type and the run file does not declare one: what is hashed or
    looked up must not be a number in one file set and a string in another ("02134" is not 2134)."""
    index_dir: Path | None = None
    """Where the indexes of files that cannot be entered at a row without one are kept; None: in memory."""
    quarantine: Quarantine | None = None  # where a row goes that cannot be read; None: it is an error


class BlockDecoder(Protocol):
    """Decodes blocks of one data set; what it holds is leased from its share."""

    use_threads: bool = False
    """Whether to decode on all cores, where the format can: somebody waits for the next batch."""

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        """Rows of a block, counted from 0 in it; views of one batch may be in use while the next is made."""
        ...

    def close(self) -> None:
        """Close files and give all bytes back; a second time does nothing."""
        ...


class ReadSizes(NamedTuple):
    """Bytes that reading takes, as far as a scan can tell."""

    min_bytes: int  # the smallest share with which the files can be read
    ample_bytes: int  # the share with which the files are read fastest: more does not help
    block_bytes: int  # the most that a batch of a decoder takes: what reading ahead holds
    decoder_bytes: int = 0
    """The share with which one thread of several decodes; 0: one thread is enough, or more would be too many."""


@dataclass(kw_only=True, eq=False)
class ScannedFiles(ABC):
    """Types, sizes, blocks and needs of some columns of some files; scanned once, opened as often as needed."""

    files: tuple[DataFile, ...]
    fingerprints: tuple[Fingerprint, ...]
    columns: pa.Schema  # the requested columns, as batches have them
    blocks: Blocks

    @property
    @abstractmethod
    def sizes(self) -> ReadSizes:
        """Computed when first used: it may take a sample of rows, which is expensive where only types count."""

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Bytes of a row in memory, estimated from rows all over the files; at least 1."""

    @abstractmethod
    def decoder(self, share: Share) -> BlockDecoder:
        """Something that reads blocks inside a share; one for each iteration over the data."""

    @property
    def num_rows(self) -> int:
        return self.blocks.total_rows


ScanFormat = Callable[[ReadingSection, Sequence[DataFile], ReadRequest], ScannedFiles]
"""How a format is scanned: what a module of this package offers under its dataset type."""


def scan_files(reading: ReadingSection, files: Sequence[DataFile], request: ReadRequest) -> ScannedFiles:
    """Look at the files once: footers, headers, indexes and a few rows."""
    dataset_type = dataset_type_of(reading, files)
    if request.columns is not None and not request.columns:
        setting = "features or label_fields"
        raise DataError(f"{files[0].path}: no column is wanted; name {setting}", setting)
    for file in files:
        if file.size_bytes == 0 and dataset_type not in _MAY_BE_EMPTY:
            raise DataError(f"{file.path}: is empty (0 bytes); write it again or leave it out")
    scan = partial(READERS.get(dataset_type), reading, files)
    if dataset_type == "OdpsDataset" or not any("=" in file.path for file in files):
        return scan(request)
    from penstock.readers.partitions import (
        partition_values,
        scan_partitioned,
    )  # it wraps what is defined here

    values = [partition_values(file) for file in files]
    keys = [key for key in values[0] if all(key in others for others in values)]
    return scan_partitioned(scan, request, keys, declared_types(reading)) if keys else scan(request)


def dataset_type_of(reading: ReadingSection, files: Sequence[DataFile]) -> str:
    """The dataset type that the run file says, or that the suffix of all files stands for."""
    suffixes = {data_suffix(file.path): file for file in files}
    for suffix in HDF5_SUFFIXES:
        if suffix in suffixes:
            raise DataError(
                f"{suffixes[suffix].path}: Penstock writes HDF5 for other programs, but does not read it; merge to "
                "target npy, parquet or ipc"
            )
    if ZIP_SUFFIX in suffixes:
        raise zip_refusal(suffixes[ZIP_SUFFIX].path)
    if reading.dataset_type is not None:
        return str(reading.dataset_type)
    types = {TYPE_OF_SUFFIX.get(suffix): file for suffix, file in suffixes.items()}
    if None in types:
        raise DataError(
            f"{types[None].path}: the suffix does not tell the format; set data_config.dataset_type",
            "data_config.dataset_type",
        )
    if len(types) > 1:
        first, second = list(types.values())[:2]
        raise DataError(f"{first.path} and {second.path} are of different formats; read them apart")
    return next(name for name in types if name is not None)


def ends_checksum(file: DataFile) -> int:
    with open_input(file.path) as source:
        checksum = zlib.crc32(read_at(source, _END_BYTES, 0))
        return zlib.crc32(read_at(source, _END_BYTES, max(0, file.size_bytes - _END_BYTES)), checksum)


# Reading.


@dataclass(eq=False)
class RollingLease:
    """Leases the block in work, and of the one before it what may still be in use as views.

    Whether a block may grow depends on the block alone and not on the one before it, so that a run that continues
    decides as the first one did: `max_needed_bytes` is for the block in work, the rest for what is retained.
    """

    _share: Share
    max_needed_bytes: int
    _held_bytes: int = field(default=0, init=False)
    _needed_bytes: int = field(default=0, init=False)
    _retained_bytes: int = field(default=0, init=False)

    def move_on(self, needed_bytes: int, retained_bytes: int) -> None:
        """Take the bytes of the next block; of the present one only what it said it retains stays leased."""
        self._share.release(self._held_bytes - self._retained_bytes)
        self._held_bytes = self._retained_bytes
        self._share.acquire(needed_bytes)
        self._held_bytes += needed_bytes
        self._needed_bytes, self._retained_bytes = needed_bytes, retained_bytes

    def change(self, needed_bytes: int, retained_bytes: int) -> None:
        """Go on with the present block, of which nothing was given out yet, as if these were its bytes."""
        extra_bytes = needed_bytes - self._needed_bytes
        if extra_bytes > 0:
            self._share.acquire(extra_bytes)
        else:
            self._share.release(-extra_bytes)
        self._held_bytes += extra_bytes
        self._needed_bytes, self._retained_bytes = needed_bytes, retained_bytes

    def grow(self, num_bytes: int, retained_bytes: int = 0) -> bool:
        """Take more for the present block, and retain a part of it; False, and nothing taken: it is too much."""
        max_retained_bytes = self._share.limit_bytes - self.max_needed_bytes
        if self._needed_bytes + num_bytes > self.max_needed_bytes:
            return False
        if retained_bytes and self._retained_bytes + retained_bytes > max_retained_bytes:
            return False
        self._share.acquire(num_bytes)
        self._held_bytes += num_bytes
        self._needed_bytes += num_bytes
        self._retained_bytes += retained_bytes
        return True

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._share.release(self._held_bytes)
        self._held_bytes = self._needed_bytes = self._retained_bytes = 0


class ParallelDecoder:
    """Decodes pieces on several threads, each with its own decoder, and gives them out in their order."""

    def __init__(self, scanned: ScannedFiles, share: Share, count: int) -> None:
        self._decoders = [scanned.decoder(part) for part in share.split(count)]
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="penstock-decode")
        self._free: SimpleQueue[BlockDecoder] = SimpleQueue()
        for decoder in self._decoders:
            self._free.put(decoder)

    def decode(self, pieces: Iterable[Piece]) -> Iterator[tuple[Piece, list[pa.RecordBatch]]]:
        """The batches of each piece. An error comes in its turn."""

        def decode(piece: Piece) -> list[pa.RecordBatch]:
            decoder = self._free.get()
            try:
                return list(decoder.batches(piece.block, piece.first_row, piece.end_row))
            finally:
                self._free.put(decoder)

        waiting: deque[tuple[Piece, Future[list[pa.RecordBatch]]]] = deque()
        for piece in pieces:
            waiting.append((piece, self._pool.submit(decode, piece)))
            if len(waiting) > len(self._decoders):
                first, batches = waiting.popleft()
                yield first, batches.result()
        for first, batches in waiting:
            yield first, batches.result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for decoder in self._decoders:
            decoder.close()


class BlockStream(RecordStream):
    """The rows of one shard: blocks as they stand, or permuted per epoch by a seed, inside the reader's share."""

    def __init__(
        self, scanned: ScannedFiles, share: Share, seed: int | None = None, shard: Shard = ONE_SHARD
    ) -> None:
        self._scanned = scanned
        self._share = share
        self._shard = shard
        self.schema = scanned.columns.append(ROW_FIELD)
        self.order = {
            "files": list(scanned.fingerprints),
            "blocks": scanned.blocks.checksum,
            "seed": seed,
            "shard": [shard.index, shard.count],
        }
        self.position = StreamPosition(0)
        self.file_paths = [file.path for file in scanned.files]
        # Made here, though each iteration makes its own: what does not fit the share is refused before the first batch.
        self._decoder: BlockDecoder | ParallelDecoder = scanned.decoder(share)

    def close(self) -> None:
        self._decoder.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._decoder.close()
        blocks, position = self._scanned.blocks, self.position
        epoch = EpochOrder(blocks, self.order["seed"], position.epoch, self._shard, position.consumed)
        pieces = epoch.pieces(position.row)
        num_decoders = 1
        if decoder_bytes := self._scanned.sizes.decoder_bytes:
            num_decoders = min(max_decode_threads(), self._share.limit_bytes // decoder_bytes)
        decoded: Iterator[tuple[Piece, Iterable[pa.RecordBatch]]]
        alone: BlockDecoder | None = None
        if num_decoders > 1:
            self._decoder = parallel = ParallelDecoder(self._scanned, self._share, num_decoders)
            decoded = parallel.decode(pieces)
        else:
            self._decoder = alone = decoder = self._scanned.decoder(self._share)
            decoded = (
                (piece, decoder.batches(piece.block, piece.first_row, piece.end_row)) for piece in pieces
            )
        with closing(self._decoder), closing(decoded):  # type: ignore[type-var]
            for piece, batches in decoded:
                file_index = int(blocks.file_index[piece.block])
                first_row = int(blocks.first_row[piece.block]) + piece.first_row
                done = 0
                if alone is not None:
                    # All cores for decoding would take the one that rows are used on, unless that has to wait for them.
                    alone.use_threads = self.num_waiting is not None and self.num_waiting() < _ENOUGH_WAITING
                for rows in batches:
                    batch = with_row_ids(rows, file_index, first_row + done)
                    if piece.mask is not None:
                        batch = batch.filter(pa.array(piece.mask[done : done + rows.num_rows]))
                    done += rows.num_rows
                    self.position = self.position.at(self.position.row + batch.num_rows)
                    if batch.num_rows:
                        yield batch
