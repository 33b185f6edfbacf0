"""From the data section of a run to a stream of batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.batching.prefetch import Prefetch, prefetch
from penstock.batching.rows import cut_by_rows
from penstock.batching.shuffle import shuffle
from penstock.config.errors import ConfigError
from penstock.config.sizes import format_size
from penstock.features.parser import Parser
from penstock.pipeline.run_config import DataConfig
from penstock.readers.blocks import Shard
from penstock.readers.files import DataFile, list_files
from penstock.readers.reading import ONE_SHARD, read_blocks
from penstock.readers.stream import RecordStream
from penstock.readers.survey import Survey, Wanted, survey
from penstock.runtime.budget import MemoryBudget, Share
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader


@dataclass(frozen=True, slots=True)
class DataSource:
    """Files that were looked at, and the parser of their rows."""

    survey: Survey
    parser: Parser
    reserved_columns: tuple[str, ...] = ()

    def fingerprint(self) -> dict[str, int]:
        """Size of each file by path."""
        return {file.path: file.size_bytes for file in self.survey.files}

    def num_batches(self, data: DataConfig) -> int:
        """Batches of one epoch."""
        whole, rest = divmod(self.survey.num_rows, data.batch_size)
        return whole + (rest > 0 and not data.drop_remainder)


def find_files(path: str, key: str) -> list[DataFile]:
    """The files that a key of the run file names."""
    if not path:
        raise ConfigError.at(key, f"is required by this command; set it, or give --{key}")
    return list_files(path)


def open_source(
    data: DataConfig,
    files: Sequence[DataFile],
    parser: Parser,
    reserved_columns: Sequence[str] = (),
    index_dir: Path | None = None,
) -> DataSource:
    """Look at the files once, and load what parsing them needs."""
    columns = tuple(dict.fromkeys([*parser.columns, *reserved_columns]))
    surveyed = survey(data, files, Wanted(columns, parser.text_columns, index_dir))
    parser.warm(surveyed.columns)
    return DataSource(surveyed, parser, tuple(reserved_columns))


def shuffle_rows(data: DataConfig, source: DataSource) -> int:
    """How many rows the shuffle buffer holds: its bytes over the bytes of a row; 0 without shuffling.

    The order of rows depends on it, so that it is decided once, and goes into the log and the checkpoint.
    """
    if not data.shuffle:
        return 0
    old_size = data.shuffle_batches()
    if old_size is not None:
        return old_size * data.batch_size
    rows = data.shuffle_buffer // source.survey.row_bytes
    if rows < 2:
        raise ConfigError.at(
            "data_config.shuffle_buffer",
            f"is {format_size(data.shuffle_buffer)} but a row takes {format_size(source.survey.row_bytes)}",
        )
    return rows


def training_batches(
    data: DataConfig,
    source: DataSource,
    budget: MemoryBudget,
    num_shuffle_rows: int,
    shard: Shard = ONE_SHARD,
) -> Prefetch[Batch]:
    """Batches to train on: read, shuffled when asked for, cut, parsed; made by one background thread."""
    seed = data.seed if data.shuffle else None
    stream: RecordStream = read_blocks(source.survey, budget.shares["reader"], seed, shard)
    if num_shuffle_rows:
        stream = shuffle(stream, num_shuffle_rows, data.seed, budget.shares["shuffle"])
    cut = cut_by_rows(stream, data.batch_size, data.drop_remainder)
    return prefetch(BatchLoader(cut, source.parser), budget.shares["prefetch"])


def scoring_batches(
    source: DataSource, shares: tuple[Share, Share], *, batch_size: int, drop_remainder: bool = False
) -> Prefetch[Batch]:
    """Batches in the order of the data, to evaluate or predict on."""
    reader_share, prefetch_share = shares
    cut = cut_by_rows(read_blocks(source.survey, reader_share), batch_size, drop_remainder)
    loader = BatchLoader(cut, source.parser, reserved_columns=source.reserved_columns)
    return prefetch(loader, prefetch_share)
