"""From the data section of a run to a chain of the data path, its memory, and batches."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.section import Section
from penstock.config.sizes import format_size
from penstock.data.chain import ByCost, ByRows, Chain, open_rows
from penstock.data.cut import CostRules
from penstock.data.dataset import Dataset
from penstock.data.memory_plan import share_data_path
from penstock.data.passes import Form
from penstock.data.prefetch import Prefetch
from penstock.data.resharding import read_lengths, state_for
from penstock.data.row_cost import ColumnCost, CostOf, SequenceLength, cost_of_expression
from penstock.data.sections import Oversize
from penstock.data.shuffle import Bucketing, ShuffleQuality
from penstock.data.sources import ArraySource, columns_in
from penstock.features import build_features
from penstock.features.id_feature import SparseIds
from penstock.features.parser import Parser
from penstock.features.sections import named_features
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.readers.columns import project
from penstock.readers.files import DataFile, list_files
from penstock.readers.order import Shard
from penstock.readers.scan import ONE_SHARD, ReadRequest, ScannedFiles, dataset_type_of, scan_files
from penstock.readers.sections import BadRows
from penstock.readers.stream import Quarantine
from penstock.run.requirements import model_section, require_available
from penstock.run.run_config import DataConfig, RunConfig, with_format_of
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.world import State
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader, pack

logger = logging.getLogger(__name__)

_SAMPLED = ("CsvDataset", "JsonDataset")
"""Formats that do not say the types of their columns."""


def build_parser(run: RunConfig, file_paths: Sequence[str] = (), with_labels: bool = True) -> Parser:
    """The parser of the features that the model uses; without labels, for prediction, it reads no sessions either."""
    data, model = run.data_config, model_section(run)
    labels, weights = (data.label_fields, data.sample_weight_fields) if with_labels else ((), ())
    binary, masks, sessions = model.label_columns(data.label_fields)
    session_columns = columns_of(run, sessions) if sessions and with_labels else {}
    used = {name for group in model.feature_groups for name in group.feature_names}
    features = build_features(run.feature_configs, data, used)
    return Parser(features, labels, weights, tuple(file_paths), binary, masks, session_columns)


def build_batch(
    run: RunConfig, table: pa.Table | pa.RecordBatch, reserved_columns: Sequence[str] = ()
) -> Batch:
    """Parse one Arrow table with a run's features; labels are read where the table has them."""
    require_available(run)
    labels = [*run.data_config.label_fields, *run.data_config.sample_weight_fields]
    parser = build_parser(run, with_labels=all(name in table.schema.names for name in labels))
    needed = project(table.schema, [*dict.fromkeys([*parser.columns, *reserved_columns])], "the table")
    batch = table.select(needed.names)
    if isinstance(batch, pa.Table):
        batches = batch.combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=batch.schema)
    reserves = batch.select(list(reserved_columns)) if reserved_columns else None
    return pack(parser.parse(batch), reserves)


def group_columns(run: RunConfig, *, training: bool) -> dict[str, str]:
    """The data column of every grouping_key of a metric."""
    model, keys = model_section(run), []
    tasks: list[ModelConfig | TowerOptions] = [model, *model.task_towers]
    for task in tasks:
        sections: Sequence[Section] = task.train_metrics if training else task.metrics
        chosen = [section.chosen("metric") for section in sections]
        keys += [getattr(each[1], "grouping_key", None) for each in chosen if each is not None]
    names = list(dict.fromkeys(filter(None, keys)))
    return columns_of(run, names) if names else {}


def columns_of(run: RunConfig, names: Sequence[str]) -> dict[str, str]:
    """The data column of every name: that of the feature of this name, or else the one called so."""
    named = [
        config
        for config in run.feature_configs
        if any(each.name in names for each in named_features([config]))
    ]
    inputs = {feature.name: feature.inputs for feature in build_features(named, run.data_config)}
    return {name: inputs[name][0] if name in inputs else name for name in names}


@dataclass(frozen=True, slots=True)
class DataSource:
    scanned: ScannedFiles
    parser: Parser
    cut: ByRows | ByCost
    max_batch_rows: int
    """Rows of a batch; where cost decides, as many as it may have at most, or as the file says otherwise."""
    reserved_columns: tuple[str, ...] = ()
    cost: CostOf | None = None
    """What a row costs, where batches are cut by cost."""
    bucketing: Bucketing | None = None
    quarantine: Quarantine | None = None
    request: ReadRequest = field(default_factory=ReadRequest)
    """What the scan was asked for."""

    @property
    def by_cost(self) -> bool:
        return isinstance(self.cut, ByCost)

    def num_batches(self, shard: Shard = ONE_SHARD) -> int | None:
        """Batches of one epoch; None where they are cut by cost, which depends on the order of the rows."""
        start, end = shard.bounds(self.scanned.num_rows)
        return self.cut.num_batches(end - start) if isinstance(self.cut, ByRows) else None


Mode: TypeAlias = Literal["train", "eval", "predict"]
MODES: tuple[Mode, ...] = ("train", "eval", "predict")


def source_of(
    run: RunConfig,
    key: str,
    run_folder: Path | None = None,
    *,
    path: str | None = None,
    mode: Mode | None = None,
    reserved_columns: Sequence[str] | None = None,
    batch_size: int | None = None,
) -> DataSource:
    """The data that a key of the run file names, or those at `path`, read for what the key says, or `mode`.

    Batches carry along the columns that metrics group by, or `reserved_columns`. What is kept of
    these data gets a folder in `run_folder`. `batch_size`: see `open_source`.
    """
    if path is not None:
        run = with_format_of(run, key, path)
    purpose = key.removesuffix("_input_path")
    mode = mode or MODES[MODES.index(purpose)]
    path = getattr(run, key) if path is None else path
    if not path:
        raise ConfigError.at(key, f"is required by this command; set it, or give --{key}")
    files = list_files(path)
    parser = build_parser(run, [file.path for file in files], with_labels=mode != "predict")
    if reserved_columns is None:
        reserved_columns = tuple(group_columns(run, training=mode == "train").values())
    folder = None if run_folder is None else run_folder / "data" / purpose
    return open_source(run.data_config, files, parser, reserved_columns, folder, mode, batch_size)


def open_source(
    data: DataConfig,
    files: Sequence[DataFile],
    parser: Parser,
    reserved_columns: Sequence[str] = (),
    folder: Path | None = None,
    mode: Mode = "train",
    batch_size: int | None = None,
) -> DataSource:
    """Scan the files once, refuse columns of a wrong type, and load what parsing the others needs.

    Batches are cut as the run says, in every mode: see `_cut`. With `batch_size` they have so many rows, whatever they
    cost. In `folder` indexes of the files are kept and rows that cannot be used are written; without it nothing is.
    """
    measures = _row_measures(data, parser)
    if mode != "train":
        measures.pop("bucket_by", None)
    if batch_size is not None:
        measures = {}
    cut_columns = [column for measure in measures.values() for column in measure.columns]
    columns = tuple(dict.fromkeys([*parser.columns, *cut_columns, *reserved_columns]))
    quarantine = None
    if data.bad_rows is BadRows.quarantine:
        bad_rows = None if folder is None else folder / "bad_rows.jsonl"
        quarantine = Quarantine(bad_rows, data.bad_rows_limit, [file.path for file in files])
    index = None if folder is None else folder / "index"
    request = ReadRequest(columns, parser.text_columns, index, quarantine)
    try:
        scanned = scan_files(data, files, request)
    except DataError as error:
        # Data to score often lack what was counted for training, and scores do not depend on batches.
        missing = [column for column in cut_columns if f"there is no column '{column}'" in str(error)]
        if mode == "train" or not missing:
            raise
        num_rows = data.resolved_eval_batch_size()
        logger.warning(
            "%s: there is no column '%s', which tells what a row costs; batches are cut by rows, %s each",
            *(files[0].path, missing[0], f"{num_rows:,}"),
        )
        return open_source(data, files, parser, reserved_columns, folder, mode, num_rows)
    file_paths = [file.path for file in scanned.files]
    if scanned.files != tuple(files):  # arrays of one folder are one part, in which rows are counted
        parser = replace(parser, file_paths=tuple(file_paths))
        if quarantine is not None:
            quarantine = Quarantine(quarantine.path, quarantine.limit, file_paths)
    if scanned.num_rows:  # types sampled from no rows say nothing
        if dataset_type_of(data, scanned.files) in _SAMPLED:
            _check_sampled_labels(data, scanned, [*parser.label_fields, *parser.sample_weight_fields])
        parser.warm(scanned.columns)
    for key, measure in measures.items():  # the first file stands for all: they have one type
        try:
            measure.check(scanned.columns)
        except DataError as error:
            raise DataError(f"{file_paths[0]}: {error} (data_config.{key})") from error
    cost = measures.get("sample_cost_field") or measures.get("sample_cost")
    length = measures.get("bucket_by")
    assert not isinstance(cost, SequenceLength)
    cut = _cut(data, cost, mode, batch_size)
    max_rows = cut.num_rows if isinstance(cut, ByRows) else data.max_batch_rows or data.batch_size
    bucketing = Bucketing(length, max_rows) if isinstance(length, SequenceLength) else None
    return DataSource(
        scanned, parser, cut, max_rows, tuple(reserved_columns), cost, bucketing, quarantine, request
    )


def _cut(data: DataConfig, cost: CostOf | None, mode: Mode, batch_size: int | None) -> ByRows | ByCost:
    """Training and evaluation leave out rows where the run says so; every row is predicted."""
    drop_remainder, oversize = data.drop_remainder, data.oversize
    if mode == "predict":
        drop_remainder, oversize = False, Oversize.alone if oversize is Oversize.drop else oversize
    if cost is None or data.batch_cost_size is None:
        usual = data.batch_size if mode == "train" else data.resolved_eval_batch_size()
        return ByRows(batch_size or usual, drop_remainder)
    null_cost = None if isinstance(data.null_cost, str) else data.null_cost
    return ByCost(
        cost, CostRules(data.batch_cost_size, data.max_batch_rows, oversize, null_cost, drop_remainder)
    )


def pieces_of(run: RunConfig, table: pa.Table) -> Iterator[pa.Table]:
    """The rows of a table that is scored, cut as those of files are."""
    data = run.data_config
    measures = _row_measures(data, build_parser(run, with_labels=False))
    cost = measures.get("sample_cost_field") or measures.get("sample_cost")
    assert not isinstance(cost, SequenceLength)
    if cost is not None and not set(cost.columns) <= set(table.schema.names):
        cost = None
    cut, size, start = _cut(data, cost, "predict", None), data.resolved_eval_batch_size(), 0
    if isinstance(cut, ByRows) or not table.num_rows:
        yield from (table.slice(start, size) for start in range(0, max(1, table.num_rows), size))
        return
    costs = ArraySource("the table", columns_in(table.select(list(cut.cost.columns))))
    for batch in Dataset(Chain(costs, cut=cut), Form.ARROW):
        yield table.slice(start, batch.num_rows)
        start += batch.num_rows


def _row_measures(data: DataConfig, parser: Parser) -> "dict[str, CostOf | SequenceLength]":
    """What cutting and bucketing measure of a row, by its key; names of features stand for their columns."""
    sequences = {
        feature.name: SequenceLength(feature.source.column, feature.source.separator.decode())
        for feature in parser.features
        if isinstance(feature, SparseIds)
    }
    found: dict[str, CostOf | SequenceLength] = {}
    if data.sample_cost_field:
        found["sample_cost_field"] = ColumnCost(data.sample_cost_field)
    elif data.sample_cost:
        found["sample_cost"] = cost_of_expression(data.sample_cost, sequences)
    if data.bucket_by:
        found["bucket_by"] = sequences.get(data.bucket_by) or SequenceLength(data.bucket_by)
    return found


def _check_sampled_labels(data: DataConfig, scanned: ScannedFiles, columns: Sequence[str]) -> None:
    """Refuse labels and weights that samples made text of, with what to declare so that bad values are found."""
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


def plan_data_path(
    budget: MemoryBudget,
    data: DataConfig,
    source: DataSource,
    others: Mapping[str, ScannedFiles] | None = None,
    num_shuffle_rows: int | None = None,
) -> tuple[int, int]:
    """Shares of all stages; gives how many rows the shuffle buffer holds, and how many workers fit beside them.

    The order of rows depends on `num_shuffle_rows`, so that it is decided once in the life of a run, and goes into the
    log and the checkpoint: the bytes of the buffer over the bytes of a row; 0 without shuffling. Where several batches
    fit, it is a whole number of them: none is then put together from two windows. `others` are data sets that are
    read on the way.
    """
    by_cost, row_bytes = source.by_cost, source.scanned.row_bytes
    if num_shuffle_rows is None and data.shuffle:
        written = data.model_fields_set
        num_shuffle_rows = data.shuffle_buffer // row_bytes
        if "shuffle_buffer_size" in written and "shuffle_buffer" not in written:  # the old key, in batches
            num_shuffle_rows = data.shuffle_buffer_size * data.batch_size
        elif num_shuffle_rows < 2:
            raise ConfigError.at(
                "data_config.shuffle_buffer",
                f"is {format_size(data.shuffle_buffer)} but a row takes {format_size(row_bytes)}",
            )
        elif not by_cost and num_shuffle_rows > data.batch_size:
            num_shuffle_rows -= num_shuffle_rows % data.batch_size
    num_rows = num_shuffle_rows or 0
    num_workers = share_data_path(
        budget,
        {"": source.scanned, **(others or {})},
        shuffle_rows=num_rows,
        prefetch_bytes=data.prefetch,
        by_cost=by_cost,
        num_workers=data.num_workers or 0,
        batch_rows=source.max_batch_rows,
    )
    return num_rows, num_workers


def open_batches(
    data: DataConfig,
    source: DataSource,
    budget: MemoryBudget,
    stage_prefix: str = "",
    *,
    num_shuffle_rows: int = 0,
    shard: Shard = ONE_SHARD,
    num_workers: int = 0,
    quality: ShuffleQuality | None = None,
) -> Prefetch[Batch]:
    """Batches of a source, made by a background thread, and by worker processes where there are any.

    `stage_prefix` stands in front of the names of its shares. `quality` sees how well the rows are mixed.
    """
    rows = open_rows(
        source.scanned,
        budget,
        source.cut,
        stage_prefix=stage_prefix,
        shuffle_rows=num_shuffle_rows,
        seed=data.seed,
        bucketing=source.bucketing,
        shard=shard,
        # Parsing here copies a batch before the next is made; workers have several in hand.
        as_views=not num_workers,
        quality=quality,
        quarantine=source.quarantine,
    )
    loader = BatchLoader(
        rows,
        source.parser,
        reserved_columns=source.reserved_columns,
        num_workers=num_workers,
        worker_share=budget.shares.get("workers"),
        quarantine=source.quarantine,
        pin_memory=data.pin_memory and bool(source.parser.label_fields),
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
