"""From the data section of a run to a stream of batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import format_size
from penstock.data.bucketing import Bucketing, read_lengths
from penstock.data.cut_cost import cut_by_cost
from penstock.data.cut_rows import cut_by_rows
from penstock.data.memory_plan import StageShares
from penstock.data.prefetch import Prefetch, prefetch, read_ahead
from penstock.data.quality import ShuffleQuality
from penstock.data.resharding import state_for
from penstock.data.row_cost import ColumnCost, CostOf, SequenceLength, cost_of_column, cost_of_expression
from penstock.data.sections import BatchingSection
from penstock.data.shuffle import shuffle
from penstock.data.stage import Stage, watch_order, without_bad_rows
from penstock.features.feature import Feature
from penstock.features.id_feature import SparseIds
from penstock.features.parser import Parser
from penstock.readers.blocks import Shard
from penstock.readers.files import DataFile, list_files
from penstock.readers.quarantine import Quarantine
from penstock.readers.reading import ONE_SHARD, read_blocks
from penstock.readers.sections import BadRows, DatasetType, ReadingSection
from penstock.readers.stream import RecordStream
from penstock.readers.survey import Survey, Wanted, dataset_type_of, survey
from penstock.run.run_config import DataConfig
from penstock.runtime.budget import Share
from penstock.runtime.state import State
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader


@dataclass(frozen=True, slots=True)
class Cutting:
    """What cutting looks at, beside the number of rows."""

    cost: CostOf | None = None
    bucketing: Bucketing | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must be read for it."""
        lengths = () if self.bucketing is None else (self.bucketing.length.column,)
        return (*(self.cost.columns if self.cost is not None else ()), *lengths)

    def check(self, columns: pa.Schema, file_path: str) -> None:
        """Refuse a column that cannot tell a cost or a length. The first file stands for all: they have one type."""
        checks: list[tuple[str, CostOf | SequenceLength]] = []
        if self.cost is not None:
            key = "sample_cost_field" if isinstance(self.cost, ColumnCost) else "sample_cost"
            checks.append((key, self.cost))
        if self.bucketing is not None:
            checks.append(("bucket_by", self.bucketing.length))
        for key, looked_at in checks:
            try:
                looked_at.check(columns)
            except DataError as error:
                raise DataError(f"{file_path}: {error} (data_config.{key})") from error

    def cut(
        self,
        source: RecordStream,
        batching: BatchingSection,
        file_paths: tuple[str, ...] = (),
        share: Share | None = None,
    ) -> Stage:
        """The batches of a run."""
        if self.cost is None or batching.batch_cost_size is None:
            return cut_by_rows(source, batching.batch_size, batching.drop_remainder)
        return cut_by_cost(
            source,
            self.cost,
            batching.batch_cost_size,
            max_batch_rows=batching.max_batch_rows,
            oversize=batching.oversize,
            null_cost=batching.null_cost,  # type: ignore[arg-type] # 'error' is None by now
            drop_remainder=batching.drop_remainder,
            file_paths=file_paths,
            share=share,
        )


BY_ROWS = Cutting()
"""Nothing but their number counts."""


def cutting_of(batching: BatchingSection, features: list[Feature]) -> Cutting:
    """The cutting of a run file; names of features stand for their columns."""
    sequences = sequence_lengths(features)
    cost: CostOf | None = None
    if batching.sample_cost_field:
        cost = cost_of_column(batching.sample_cost_field)
    elif batching.sample_cost:
        cost = cost_of_expression(batching.sample_cost, sequences)
    bucketing = None
    if batching.bucket_by:
        length = sequences.get(batching.bucket_by) or SequenceLength(batching.bucket_by)
        by_cost = batching.batch_cost_size is not None
        run_rows = batching.max_batch_rows if by_cost and batching.max_batch_rows else batching.batch_size
        bucketing = Bucketing(length, run_rows)
    return Cutting(cost, bucketing)


def sequence_lengths(features: list[Feature]) -> Mapping[str, SequenceLength]:
    """Of each feature that may have several values: its column, and what stands between them in a text."""
    return {
        feature.name: SequenceLength(feature.source.column, feature.source.separator.decode())
        for feature in features
        if isinstance(feature, SparseIds)
    }


_SAMPLED = (DatasetType.CsvDataset, DatasetType.JsonDataset)
"""Formats that do not say the types of their columns."""


def check_sampled_labels(reading: ReadingSection, survey: Survey, columns: Sequence[str]) -> None:
    """Refuse labels and weights that samples made text of, with what to declare so that bad values are found."""
    if dataset_type_of(reading, survey.files) not in _SAMPLED or not survey.num_rows:
        return
    declared = {field.input_name for field in reading.resolved_input_fields() if field.input_type is not None}
    for name in columns:
        if name not in declared and pa.types.is_string(survey.columns.field(name).type):
            raise DataError.at(
                "not all of its values are numbers, so that it was taken for text; declare its type in "
                f"data_config.input_fields ({{input_name: {name}, input_type: INT64}}): then the first bad row is "
                "named, or with data_config.bad_rows: quarantine all of them are set aside",
                file=survey.files[0].path if len(survey.files) == 1 else None,
                column=name,
            )


@dataclass(frozen=True, slots=True)
class DataSource:
    """Files that were looked at, and the parser of their rows."""

    survey: Survey
    parser: Parser
    reserved_columns: tuple[str, ...] = ()
    cutting: Cutting = BY_ROWS
    quarantine: Quarantine | None = None
    wanted: Wanted = field(default_factory=Wanted)
    """What the survey was asked for."""

    def fingerprint(self) -> dict[str, int]:
        """Size of each file by path."""
        return {file.path: file.size_bytes for file in self.survey.files}

    def num_batches(self, data: DataConfig) -> int | None:
        """Batches of one epoch; None where they are cut by cost, which depends on the order of the rows."""
        if self.cutting.cost is not None:
            return None
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
    beside: Path | None = None,
    scoring: bool = False,
) -> DataSource:
    """Look at the files once, refuse columns of a wrong type, and load what parsing the others needs.

    Rows for `scoring` are cut by their number, whatever the run does in training: they need no cost.
    `beside` is a folder of the run, where indexes of the files are kept and rows that cannot be used are written;
    without it nothing is written.
    """
    cutting = BY_ROWS if scoring else cutting_of(data, list(parser.features))
    columns = tuple(dict.fromkeys([*parser.columns, *cutting.columns, *reserved_columns]))
    quarantine = open_quarantine(data, files, beside)
    wanted = Wanted(columns, parser.text_columns, None if beside is None else beside / "index", quarantine)
    surveyed = survey(data, files, wanted)
    check_sampled_labels(data, surveyed, [*parser.label_fields, *parser.sample_weight_fields])
    if surveyed.files != tuple(files):  # arrays of one folder are one part, which rows are counted in
        quarantine = open_quarantine(data, surveyed.files, beside)
    parser = parser.of_files([file.path for file in surveyed.files])
    if surveyed.num_rows:  # types sampled from no rows say nothing
        parser.warm(surveyed.columns)
    cutting.check(surveyed.columns, surveyed.files[0].path)
    return DataSource(surveyed, parser, tuple(reserved_columns), cutting, quarantine, wanted)


def open_quarantine(data: DataConfig, files: Sequence[DataFile], beside: Path | None) -> Quarantine | None:
    """Where rows go that cannot be used; None where such a row is an error."""
    if data.bad_rows is not BadRows.quarantine:
        return None
    path = None if beside is None else beside / "bad_rows.jsonl"
    return Quarantine(path, data.bad_rows_limit, [file.path for file in files])


def shuffle_rows(data: DataConfig, source: DataSource) -> int:
    """How many rows the shuffle buffer holds: its bytes over the bytes of a row; 0 without shuffling.

    The order of rows depends on it, so that it is decided once, and goes into the log and the checkpoint. Where
    there is room for several batches, it is a whole number of them: none is then put together from two windows.
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
    by_rows = source.cutting.cost is None and rows > data.batch_size
    return rows - rows % data.batch_size if by_rows else rows


def training_rows(
    data: DataConfig,
    source: DataSource,
    shares: StageShares,
    num_shuffle_rows: int,
    shard: Shard = ONE_SHARD,
    quality: ShuffleQuality | None = None,
    as_views: bool = False,
) -> RecordStream:
    """Record batches to train on: read, shuffled when asked for, cut; `quality` sees how well they are mixed."""
    stream = _read(source, shares, data.seed if data.shuffle else None, shard)
    if num_shuffle_rows:
        piece_rows = min(data.batch_size, num_shuffle_rows)
        stream = shuffle(
            stream,
            num_shuffle_rows,
            data.seed,
            shares.shuffle,
            source.cutting.bucketing,
            piece_rows,
            as_views and source.cutting.cost is None and num_shuffle_rows % data.batch_size == 0,
        )
    stream = _usable(source, source.cutting.cut(stream, data, source.parser.file_paths, shares.cut))
    return stream if quality is None else watch_order(stream, quality, next(iter(data.label_fields), None))


def training_batches(
    data: DataConfig,
    source: DataSource,
    shares: StageShares,
    num_shuffle_rows: int,
    shard: Shard = ONE_SHARD,
    num_workers: int = 0,
    quality: ShuffleQuality | None = None,
) -> Prefetch[Batch]:
    """Batches to train on, made by a background thread, and by worker processes where there are any."""
    # Parsing here copies a batch before the next is made; workers have several in hand.
    stream = training_rows(data, source, shares, num_shuffle_rows, shard, quality, as_views=not num_workers)
    loader = BatchLoader(
        stream,
        source.parser,
        reserved_columns=source.reserved_columns,
        num_workers=num_workers,
        worker_share=shares.workers,
        quarantine=source.quarantine,
        pin_memory=data.pin_memory,
    )
    return prefetch(loader, shares.prefetch)


def scoring_batches(
    source: DataSource,
    shares: StageShares,
    *,
    batch_size: int,
    drop_remainder: bool = False,
    shard: Shard = ONE_SHARD,
    pin_memory: bool = False,
) -> Prefetch[Batch]:
    """Batches in the order of the data, to evaluate or predict on."""
    cut = _usable(source, cut_by_rows(_read(source, shares, shard=shard), batch_size, drop_remainder))
    loader = BatchLoader(
        cut,
        source.parser,
        reserved_columns=source.reserved_columns,
        quarantine=source.quarantine,
        pin_memory=pin_memory,
    )
    return prefetch(loader, shares.prefetch)


def resumed_state(
    states: Sequence[State], source: DataSource, shares: StageShares, shard: Shard = ONE_SHARD
) -> State:
    """The place of one rank, from the places that all ranks saved at one moment, however many they were."""
    bucketing = source.cutting.bucketing
    lengths = None if bucketing is None else read_lengths(source.survey, shares.reader, bucketing)
    return state_for(states, source.survey.blocks, shard, lengths)


def _read(
    source: DataSource, shares: StageShares, seed: int | None = None, shard: Shard = ONE_SHARD
) -> RecordStream:
    stream = read_blocks(source.survey, shares.reader, seed, shard)
    return stream if shares.read_ahead is None else read_ahead(stream, shares.read_ahead)


def _usable(source: DataSource, stream: RecordStream) -> RecordStream:
    return stream if source.quarantine is None else without_bad_rows(stream, source.quarantine)
