"""What can be known of files before they are read, and before anybody decides how many bytes reading may take."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers import READERS
from penstock.readers.files import HDF5_SUFFIXES, TYPE_OF_SUFFIX, DataFile, data_suffix
from penstock.readers.order import Blocks
from penstock.readers.sections import ReadingSection
from penstock.readers.storage import open_input, read_at
from penstock.readers.stream import Quarantine
from penstock.runtime.budget import Share

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

    @property
    def min_bytes(self) -> int:
        return self.sizes.min_bytes

    @property
    def ample_bytes(self) -> int:
        return self.sizes.ample_bytes

    @property
    def block_bytes(self) -> int:
        return self.sizes.block_bytes


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
    return READERS.get(dataset_type)(reading, files, request)


def dataset_type_of(reading: ReadingSection, files: Sequence[DataFile]) -> str:
    """The dataset type that the run file says, or that the suffix of all files stands for."""
    suffixes = {data_suffix(file.path): file for file in files}
    for suffix in HDF5_SUFFIXES:
        if suffix in suffixes:
            raise DataError(
                f"{suffixes[suffix].path}: Penstock writes HDF5 for other programs, but does not read it; merge to "
                "target npy, parquet or ipc"
            )
    if reading.dataset_type is not None:
        return str(reading.dataset_type)
    types = {TYPE_OF_SUFFIX.get(suffix): file for suffix, file in suffixes.items()}
    if None in types:
        raise DataError(
            f"{types[None].path}: the suffix does not tell the format; set data_config.dataset_type"
        )
    if len(types) > 1:
        first, second = list(types.values())[:2]
        raise DataError(f"{first.path} and {second.path} are of different formats; read them apart")
    return next(name for name in types if name is not None)


def ends_checksum(file: DataFile) -> int:
    with open_input(file.path) as source:
        checksum = zlib.crc32(read_at(source, _END_BYTES, 0))
        return zlib.crc32(read_at(source, _END_BYTES, max(0, file.size_bytes - _END_BYTES)), checksum)
