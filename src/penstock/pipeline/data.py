"""From the data section of a run to a stream of batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.batching.prefetch import Prefetch, prefetch
from penstock.batching.rows import cut_by_rows
from penstock.batching.shuffle import shuffle
from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB, format_size
from penstock.features.parser import Parser
from penstock.pipeline.run_config import DataConfig
from penstock.readers.files import DataFile, list_files
from penstock.readers.opening import open_reader
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import MemoryBudget, Share
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader

SAMPLING_BYTES = 32 * MIB


@dataclass(frozen=True, slots=True)
class DataSource:
    """Which files, and which of their columns."""

    files: list[DataFile]
    columns: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """The files' paths, in reading order."""
        return [file.path for file in self.files]

    def num_batches(self, data: DataConfig) -> int | None:
        """Batches of one epoch, where the files say how many rows they have without being read."""
        share = Share("counting", SAMPLING_BYTES)
        num_rows = open_reader(data, self.files, self.columns, share).num_rows
        if num_rows is None:
            return None
        whole, rest = divmod(num_rows, data.batch_size)
        return whole + (rest > 0 and not data.drop_remainder)

    def fingerprint(self) -> dict[str, int]:
        """Size of each file by path."""
        return {file.path: file.size_bytes for file in self.files}


def find_files(path: str, key: str) -> list[DataFile]:
    """The files that a key of the run file names."""
    if not path:
        raise ConfigError.at(key, f"is required by this command; set it, or give --{key}")
    return list_files(path)


def shuffle_rows(data: DataConfig, source: DataSource) -> int:
    """How many rows the shuffle buffer holds: its bytes over the bytes of a row, as the first batch has them.

    Decided once; the number goes into the log and the checkpoint, since the order of rows depends on it.
    """
    if not data.shuffle:
        return 0
    old_size = data.shuffle_batches()
    if old_size is not None:
        return old_size * data.batch_size
    row_bytes = sample_row_bytes(data, source)
    rows = data.shuffle_buffer // row_bytes
    if rows < 2:
        raise ConfigError.at(
            "data_config.shuffle_buffer",
            f"is {format_size(data.shuffle_buffer)} but a row takes {format_size(row_bytes)}",
        )
    return rows


def sample_row_bytes(data: DataConfig, source: DataSource) -> int:
    """Bytes of one row in memory, by the first rows of the data."""
    share = Share("sampling", SAMPLING_BYTES)
    for batch in open_reader(data, source.files, source.columns, share):
        if batch.num_rows:
            return max(1, -(-batch.get_total_buffer_size() // batch.num_rows))
    raise DataError(f"{source.files[0].path}: there are no rows to train on")


def training_batches(
    data: DataConfig, source: DataSource, parser: Parser, budget: MemoryBudget, num_shuffle_rows: int
) -> Prefetch[Batch]:
    """Batches to train on: read, shuffled when asked for, cut, parsed; made by one background thread."""
    stream: RecordStream = open_reader(
        data,
        source.files,
        source.columns,
        budget.shares["reader"],
        block_shuffle_seed=data.seed if data.shuffle else None,
    )
    if num_shuffle_rows:
        stream = shuffle(stream, num_shuffle_rows, data.seed)
    loader = BatchLoader(cut_by_rows(stream, data.batch_size, data.drop_remainder), parser)
    loader.warm()
    return prefetch(loader, budget.shares["prefetch"])


def scoring_batches(
    data: DataConfig,
    source: DataSource,
    parser: Parser,
    shares: tuple[Share, Share],
    *,
    batch_size: int,
    reserved_columns: Sequence[str] = (),
    drop_remainder: bool = False,
) -> Prefetch[Batch]:
    """Batches in the order of the data, to evaluate or predict on."""
    reader_share, prefetch_share = shares
    stream: RecordStream = open_reader(data, source.files, source.columns, reader_share)
    cut = cut_by_rows(stream, batch_size, drop_remainder)
    loader = BatchLoader(cut, parser, reserved_columns=reserved_columns)
    return prefetch(loader, prefetch_share)
