"""From the data section of a run to a stream of batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.batching.prefetch import Prefetch, prefetch
from penstock.batching.rows import cut_by_rows
from penstock.batching.shuffle import shuffle
from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB, format_size
from penstock.features.parser import Parser
from penstock.pipeline.run_config import DataConfig
from penstock.readers.files import DataFile, list_files
from penstock.readers.opening import open_reader
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import MemoryBudget, Share
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader

PROBE_BYTES = 512 * MIB
"""Room to open any file: a probe reads at most its first rows, and lets them go."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """Which files, and which of their columns."""

    files: list[DataFile]
    columns: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """The files' paths, in reading order."""
        return [file.path for file in self.files]

    def fingerprint(self) -> dict[str, int]:
        """Size of each file by path."""
        return {file.path: file.size_bytes for file in self.files}


def find_files(path: str, key: str) -> list[DataFile]:
    """The files that a key of the run file names."""
    if not path:
        raise ConfigError.at(key, f"is required by this command; set it, or give --{key}")
    return list_files(path)


@dataclass(frozen=True, slots=True)
class DataFacts:
    """What is known of the data before the first batch is asked for."""

    num_batches: int | None
    """Batches of one epoch; None where the files do not say how many rows they have."""

    num_shuffle_rows: int
    """How many rows the shuffle buffer holds, 0 without shuffling. The order of rows depends on it, so that it is
    decided once, and goes into the log and the checkpoint."""


def probe(data: DataConfig, source: DataSource, parser: Parser) -> DataFacts:
    """Open the data once, to count and to weigh it, and load what parsing needs."""
    reader = open_reader(data, source.files, source.columns, Share("probe", PROBE_BYTES))
    parser.warm(reader.schema)
    num_batches = None
    if reader.num_rows is not None:
        whole, rest = divmod(reader.num_rows, data.batch_size)
        num_batches = whole + (rest > 0 and not data.drop_remainder)
    return DataFacts(num_batches, shuffle_rows(data, reader) if data.shuffle else 0)


def shuffle_rows(data: DataConfig, reader: RecordStream) -> int:
    """Rows of the shuffle buffer: its bytes over the bytes of a row, as the first batch has them."""
    old_size = data.shuffle_batches()
    if old_size is not None:
        return old_size * data.batch_size
    first = next((batch for batch in reader if batch.num_rows), None)
    if first is None:
        return 0
    row_bytes = -(-first.get_total_buffer_size() // first.num_rows)
    rows = data.shuffle_buffer // row_bytes
    if rows < 2:
        raise ConfigError.at(
            "data_config.shuffle_buffer",
            f"is {format_size(data.shuffle_buffer)} but a row takes {format_size(row_bytes)}",
        )
    return rows


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
