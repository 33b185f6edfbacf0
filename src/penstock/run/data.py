"""From the data section of a run to a chain of the data path, its memory, and batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError, hint
from penstock.config.sizes import format_size
from penstock.data.chain import ByCost, ByRows, open_rows
from penstock.data.cut import CostRules
from penstock.data.memory_plan import share_data_path
from penstock.data.prefetch import Prefetch
from penstock.data.resharding import read_lengths, state_for
from penstock.data.row_cost import ColumnCost, CostOf, SequenceLength, cost_of_expression
from penstock.data.shuffle import Bucketing, ShuffleQuality
from penstock.features.id_feature import SparseIds
from penstock.features.parser import Parser
from penstock.readers.files import DataFile, list_files
from penstock.readers.order import Shard
from penstock.readers.quarantine import Quarantine
from penstock.readers.reading import ONE_SHARD
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of, scan_files
from penstock.readers.sections import BadRows
from penstock.readers.stream import RecordStream
from penstock.run.build import build_parser
from penstock.run.requirements import require_available
from penstock.run.run_config import DataConfig, RunConfig
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import limit_of
from penstock.runtime.world import State, World
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader

_SAMPLED = ("CsvDataset", "JsonDataset")
"""Formats that do not say the types of their columns."""


@dataclass(frozen=True, slots=True)
class DataSource:
    scanned: ScannedFiles
    parser: Parser
    reserved_columns: tuple[str, ...] = ()
    cost: CostOf | None = None
    """What a row costs, where batches are cut by cost."""
    bucketing: Bucketing | None = None
    quarantine: Quarantine | None = None
    request: ReadRequest = field(default_factory=ReadRequest)
    """What the scan was asked for."""

    def fingerprint(self) -> dict[str, int]:
        return {file.path: file.size_bytes for file in self.scanned.files}

    def cut(self, data: DataConfig) -> ByRows | ByCost:
        if self.cost is None or data.batch_cost_size is None:
            return ByRows(data.batch_size, data.drop_remainder)
        null_cost = None if isinstance(data.null_cost, str) else data.null_cost
        size, rows = data.batch_cost_size, data.max_batch_rows
        return ByCost(self.cost, CostRules(size, rows, data.oversize, null_cost, data.drop_remainder))

    def num_batches(self, data: DataConfig) -> int | None:
        """Batches of one epoch; None where they are cut by cost, which depends on the order of the rows."""
        cut = self.cut(data)
        return cut.num_batches(self.scanned.num_rows) if isinstance(cut, ByRows) else None


def find_files(path: str, key: str) -> list[DataFile]:
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
    sequences = {
        feature.name: SequenceLength(feature.source.column, feature.source.separator.decode())
        for feature in parser.features
        if isinstance(feature, SparseIds)
    }
    # What cutting and bucketing look at, by its key; names of features stand for their columns.
    looked_at: dict[str, CostOf | SequenceLength] = {}
    if data.sample_cost_field and not scoring:
        looked_at["sample_cost_field"] = ColumnCost(data.sample_cost_field)
    elif data.sample_cost and not scoring:
        looked_at["sample_cost"] = cost_of_expression(data.sample_cost, sequences)
    if data.bucket_by and not scoring:
        looked_at["bucket_by"] = sequences.get(data.bucket_by) or SequenceLength(data.bucket_by)
    cut_columns = [column for looks in looked_at.values() for column in looks.columns]
    columns = tuple(dict.fromkeys([*parser.columns, *cut_columns, *reserved_columns]))

    def open_quarantine(files: Sequence[DataFile]) -> Quarantine | None:
        """Where rows go that cannot be used; None where such a row is an error."""
        if data.bad_rows is not BadRows.quarantine:
            return None
        path = None if beside is None else beside / "bad_rows.jsonl"
        return Quarantine(path, data.bad_rows_limit, [file.path for file in files])

    quarantine = open_quarantine(files)
    wanted = ReadRequest(
        columns, parser.text_columns, None if beside is None else beside / "index", quarantine
    )
    scanned = scan_files(data, files, wanted)
    _check_sampled_labels(data, scanned, [*parser.label_fields, *parser.sample_weight_fields])
    if scanned.files != tuple(files):  # arrays of one folder are one part, which rows are counted in
        quarantine = open_quarantine(scanned.files)
    parser = replace(parser, file_paths=tuple(file.path for file in scanned.files))
    if scanned.num_rows:  # types sampled from no rows say nothing
        parser.warm(scanned.columns)
    for key, looks in looked_at.items():  # the first file stands for all: they have one type
        try:
            looks.check(scanned.columns)
        except DataError as error:
            raise DataError(f"{scanned.files[0].path}: {error} (data_config.{key})") from error
    cost = looked_at.get("sample_cost_field") or looked_at.get("sample_cost")
    length = looked_at.get("bucket_by")
    assert not isinstance(cost, SequenceLength)
    bucketing = Bucketing(length, batch_rows(data)) if isinstance(length, SequenceLength) else None
    return DataSource(scanned, parser, tuple(reserved_columns), cost, bucketing, quarantine, wanted)


def _check_sampled_labels(data: DataConfig, scanned: ScannedFiles, columns: Sequence[str]) -> None:
    """Refuse labels and weights that samples made text of, with what to declare so that bad values are found."""
    if dataset_type_of(data, scanned.files) not in _SAMPLED or not scanned.num_rows:
        return
    declared = {field.input_name for field in data.resolved_input_fields() if field.input_type is not None}
    for name in columns:
        if name not in declared and pa.types.is_string(scanned.columns.field(name).type):
            raise DataError.at(
                "not all of its values are numbers, so that it was taken for text; declare its type in "
                f"data_config.input_fields ({{input_name: {name}, input_type: INT64}}): then the first bad row is "
                "named, or with data_config.bad_rows: quarantine all of them are set aside",
                file=scanned.files[0].path if len(scanned.files) == 1 else None,
                column=name,
            )


def batch_rows(data: DataConfig) -> int:
    """Rows of a batch; where cost decides, as many as it may have at most, or as many as the file says otherwise."""
    return data.max_batch_rows or data.batch_size if data.batch_cost_size else data.batch_size


def shuffle_rows(data: DataConfig, source: DataSource) -> int:
    """How many rows the shuffle buffer holds: its bytes over the bytes of a row; 0 without shuffling.

    The order of rows depends on it, so that it is decided once, and goes into the log and the checkpoint. Where
    there is room for several batches, it is a whole number of them: none is then put together from two windows.
    """
    if not data.shuffle:
        return 0
    written = data.model_fields_set
    if "shuffle_buffer_size" in written and "shuffle_buffer" not in written:  # the old key, in batches
        return data.shuffle_buffer_size * data.batch_size
    rows = data.shuffle_buffer // source.scanned.row_bytes
    if rows < 2:
        raise ConfigError.at(
            "data_config.shuffle_buffer",
            f"is {format_size(data.shuffle_buffer)} but a row takes {format_size(source.scanned.row_bytes)}",
        )
    return rows - rows % data.batch_size if source.cost is None and rows > data.batch_size else rows


def plan_data_path(
    budget: MemoryBudget,
    data: DataConfig,
    source: DataSource,
    num_shuffle_rows: int,
    others: Mapping[str, ScannedFiles] | None = None,
) -> int:
    """Shares of all stages; gives how many workers fit beside them. `others` are data sets that are read on the way."""
    return share_data_path(
        budget,
        {"": source.scanned, **(others or {})},
        shuffle_rows=num_shuffle_rows,
        prefetch_bytes=data.prefetch,
        by_cost=source.cost is not None,
        num_workers=data.num_workers or 0,
        batch_rows=batch_rows(data),
    )


def training_rows(
    data: DataConfig,
    source: DataSource,
    budget: MemoryBudget,
    num_shuffle_rows: int,
    shard: Shard = ONE_SHARD,
    quality: ShuffleQuality | None = None,
    as_views: bool = False,
) -> RecordStream:
    """Record batches to train on; `quality` sees how well they are mixed."""
    return open_rows(
        source.scanned,
        budget,
        source.cut(data),
        shuffle_rows=num_shuffle_rows,
        seed=data.seed,
        bucketing=source.bucketing,
        shard=shard,
        as_views=as_views,
        quality=quality,
        quarantine=source.quarantine,
    )


def training_batches(
    data: DataConfig,
    source: DataSource,
    budget: MemoryBudget,
    num_shuffle_rows: int,
    shard: Shard = ONE_SHARD,
    num_workers: int = 0,
    quality: ShuffleQuality | None = None,
) -> Prefetch[Batch]:
    """Batches to train on, made by a background thread, and by worker processes where there are any."""
    # Parsing here copies a batch before the next is made; workers have several in hand.
    stream = training_rows(data, source, budget, num_shuffle_rows, shard, quality, as_views=not num_workers)
    return _loaded(stream, source, budget, data.pin_memory, num_workers=num_workers)


def scoring_batches(
    source: DataSource,
    budget: MemoryBudget,
    *,
    batch_size: int,
    stage_prefix: str = "",
    drop_remainder: bool = False,
    shard: Shard = ONE_SHARD,
    pin_memory: bool = False,
) -> Prefetch[Batch]:
    cut = ByRows(batch_size, drop_remainder)
    stream = open_rows(
        source.scanned, budget, cut, stage_prefix=stage_prefix, shard=shard, quarantine=source.quarantine
    )
    return _loaded(stream, source, budget, pin_memory, stage_prefix)


def _loaded(
    stream: RecordStream,
    source: DataSource,
    budget: MemoryBudget,
    pin_memory: bool,
    stage_prefix: str = "",
    num_workers: int = 0,
) -> Prefetch[Batch]:
    loader = BatchLoader(
        stream,
        source.parser,
        reserved_columns=source.reserved_columns,
        num_workers=num_workers,
        worker_share=budget.shares.get("workers"),
        quarantine=source.quarantine,
        pin_memory=pin_memory,
    )
    return Prefetch(loader, budget.shares[f"{stage_prefix}prefetch"])


def resumed_state(
    states: Sequence[State], source: DataSource, budget: MemoryBudget, shard: Shard = ONE_SHARD
) -> State:
    """The position of one rank, from the positions that all ranks saved at one moment, however many they were."""
    lengths = None
    if source.bucketing is not None:
        lengths = read_lengths(source.scanned, budget.shares["reader"], source.bucketing)
    return state_for(states, source.scanned.blocks, shard, lengths)


MODES = ("train", "eval", "predict")


def create_dataloader(
    run: RunConfig,
    mode: Literal["train", "eval", "predict"] = "train",
    world: World | None = None,
    states: Sequence[State] = (),
) -> Prefetch[Batch]:
    """Batches of a run's data, with `state_dict`; use it in a `with` block, or close it.

    "train" reads train_input_path, in training order; "eval" and "predict" read eval_input_path in the order of the
    files, "predict" without labels. With a `world` of several ranks, each rank reads its part of the rows. `states`
    are what `state_dict` gave on every rank at one moment: the rest of that epoch follows, on as many ranks as there
    are now.
    """
    if mode not in MODES:
        raise ConfigError(f"create_dataloader: mode is {mode!r}; {hint(str(mode), MODES)}")
    require_available(run)
    if world is not None and not isinstance(world, World):
        raise ConfigError(f"create_dataloader: world is {world!r}; give a penstock.World(rank, num_ranks)")
    given: object = states  # whoever calls without types easily gives one state for a list
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(
            f"create_dataloader: states is an object of type {type(states).__name__}; give a list with what "
            "state_dict() gave on every rank, such as states=[state]"
        )
    data, is_training = run.data_config, mode == "train"
    key = "train_input_path" if is_training else "eval_input_path"
    files = find_files(getattr(run, key), key)
    parser = build_parser(run, [file.path for file in files], with_labels=mode != "predict")
    source = open_source(data, files, parser, scoring=not is_training)
    budget, shard = (
        MemoryBudget(limit_of(run.memory)),
        Shard() if world is None else Shard(world.rank, world.num_ranks),
    )
    if is_training:
        num_shuffle_rows = shuffle_rows(data, source)
        num_workers = plan_data_path(budget, data, source, num_shuffle_rows)
        batches = training_batches(data, source, budget, num_shuffle_rows, shard, num_workers)
    else:
        share_data_path(budget, {"": source.scanned}, prefetch_bytes=data.prefetch)
        size, pin_memory = data.resolved_eval_batch_size(), data.pin_memory and bool(parser.label_fields)
        batches = scoring_batches(source, budget, batch_size=size, shard=shard, pin_memory=pin_memory)
    if states:
        batches.load_state_dict(resumed_state(states, source, budget, shard))
    return batches
