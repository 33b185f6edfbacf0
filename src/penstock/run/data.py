"""From the data section of a run to a chain of the data path, its memory, and batches."""

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, ConfigError, DataError
from penstock.config.section import Section
from penstock.config.sizes import MIB, format_size
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
from penstock.features.masking import Masking
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
from penstock.run.run_config import DataConfig, RunConfig, used_features, with_format_of
from penstock.runtime.budget import MemoryBudget, Share
from penstock.runtime.world import State
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader, pack

logger = logging.getLogger(__name__)

_SAMPLED = ("CsvDataset", "JsonDataset")
"""Formats that do not say the types of their columns."""


def build_parser(
    run: RunConfig,
    file_paths: Sequence[str] = (),
    with_labels: bool = True,
    counts_values: bool = False,
    hides_values: bool = False,
) -> Parser:
    """The parser of the features that the model uses; without labels, for prediction, it reads no sessions either."""
    data, model = run.data_config, model_section(run)
    labels, weights = (data.label_fields, data.sample_weight_fields) if with_labels else ((), ())
    binary, masks, sessions = model.label_columns(data.label_fields)
    session_columns = columns_of(run, sessions) if sessions and with_labels else {}
    single = {tower.task_space_indicator_label for tower in model.task_towers}
    single |= {getattr(tower, "label_name", None) for tower in model.task_towers} or {*data.label_fields[:1]}
    features = build_features(run.feature_configs, data, used_features(run))
    return Parser(
        *(
            features,
            labels,
            weights,
            tuple(file_paths),
            binary,
            [*filter(None, single)],
            masks,
            session_columns,
        ),
        label_map=data.label_map,
        counts_values=counts_values,
        num_threads=data.fg_threads,
        masking=Masking(data.sample_mask_prob, data.seed) if hides_values and data.sample_mask_prob else None,
    )


def build_batch(
    run: RunConfig, table: pa.Table | pa.RecordBatch, reserved_columns: Sequence[str] = ()
) -> Batch:
    """Parse one Arrow table with a run's features; labels are read where the table has them."""
    require_available(run)
    labels = [*run.data_config.label_fields, *run.data_config.sample_weight_fields]
    parser = build_parser(run, with_labels=all(name in table.schema.names for name in labels))
    return parsed_batch(parser, table, reserved_columns)


def parsed_batch(
    parser: Parser, table: pa.Table | pa.RecordBatch, reserved_columns: Sequence[str] = ()
) -> Batch:
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


class LargestBatch(NamedTuple):
    num_rows: int
    row_bytes: int
    """Of a row as it is read."""
    setting: str
    """What makes it smaller."""


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
    rows_setting: str = "data_config.batch_size"
    """What makes batches smaller."""

    def expecting(self, kinds: Mapping[str, str]) -> "DataSource":
        """The same, but a column of another kind than in training is refused where that would change ids."""
        return replace(self, parser=replace(self.parser, trained_kinds=kinds))

    @property
    def by_cost(self) -> bool:
        return isinstance(self.cut, ByCost)

    @property
    def largest_batch(self) -> LargestBatch:
        return LargestBatch(self.max_batch_rows, self.scanned.row_bytes, self.rows_setting)

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
    paths = [file.path for file in files]
    is_training = mode == "train"
    parser = build_parser(
        run, paths, mode != "predict", counts_values=not is_training, hides_values=is_training
    )
    if reserved_columns is None:
        reserved_columns = tuple(group_columns(run, training=is_training).values())
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
        _check_labels(data, scanned, parser)
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
    rows_setting = "data_config.batch_size" if mode == "train" else "data_config.eval_batch_size"
    if isinstance(cut, ByCost):
        rows_setting = "data_config.max_batch_rows"
    elif batch_size is not None:
        rows_setting = "--batch_size"
    return DataSource(
        scanned,
        parser,
        cut,
        max_rows,
        tuple(reserved_columns),
        cost,
        bucketing,
        quarantine,
        request,
        rows_setting,
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
        feature.name: SequenceLength(feature.inputs[0], next(iter(feature.separators), ""))
        for feature in parser.features
        if feature.table is not None and feature.inputs
    }
    found: dict[str, CostOf | SequenceLength] = {}
    if data.sample_cost_field:
        found["sample_cost_field"] = ColumnCost(data.sample_cost_field)
    elif data.sample_cost:
        found["sample_cost"] = cost_of_expression(data.sample_cost, sequences)
    if data.bucket_by:
        found["bucket_by"] = sequences.get(data.bucket_by) or SequenceLength(data.bucket_by)
    return found


def _check_labels(data: DataConfig, scanned: ScannedFiles, parser: Parser) -> None:
    """Refuse labels and weights that are strings, with the cure.

    Strings of which none is a number are words, which data_config.label_map gives a meaning. In CSV and JSON a few bad
    values make strings of numbers: there a declared type finds the bad ones.
    """
    declared = {field.input_name for field in data.resolved_input_fields() if field.input_type is not None}
    is_sampled = dataset_type_of(data, scanned.files) in _SAMPLED
    file = scanned.files[0].path if len(scanned.files) == 1 else None
    for name in [*parser.label_fields, *parser.sample_weight_fields]:
        kind = scanned.columns.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if name in parser.label_map or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        words = _words(scanned, name) if name in parser.label_fields else []
        are_numbers = any(_NUMBER.fullmatch(word) for word in words)
        if words and not (is_sampled and are_numbers):
            # Sorted, no comes before yes, and <=50K before >50K.
            shown = [word if _PLAIN_KEY.fullmatch(word) else json.dumps(word) for word in words[:_MAX_WORDS]]
            meanings = ", ".join(f"{word}: {number}" for number, word in enumerate(shown))
            more = f", and {len(words) - _MAX_WORDS:,} more" if len(words) > _MAX_WORDS else ""
            raise DataError.at(
                f"holds strings ({', '.join(shown)}{more}) where a label is a number; say what they mean in "
                f"data_config.label_map: {{{name}: {{{meanings}{', ...' if more else ''}}}}}",
                file=scanned.files[0].path,
                column=name,
            )
        if is_sampled and name not in declared:
            raise DataError.at(
                "not all of its values are numbers, so that it was taken for text; declare its type in "
                f"data_config.input_fields ({{input_name: {name}, input_type: INT64}}): then the first bad row is "
                "named, or with data_config.bad_rows: quarantine all of them are set aside",
                file=file,
                column=name,
            )


_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_PLAIN_KEY = re.compile(r"[^\W\d][\w.-]*")
"""What needs no quotes as a key of YAML."""
_MAX_WORDS = 8
_WORD_ROWS, _WORD_BYTES = 4096, 32 * MIB


def _words(scanned: ScannedFiles, column: str) -> list[str]:
    """The strings of a column in the first rows of some blocks, sorted; none where these cannot be read."""
    last = len(scanned.blocks.num_rows) - 1
    found: set[str] = set()
    try:
        share = Share("the words of labels", max(_WORD_BYTES, scanned.sizes.min_bytes))
        with closing(scanned.decoder(share)) as decoder:
            for block in sorted({0, last // 2, last}):
                end_row = min(_WORD_ROWS, int(scanned.blocks.num_rows[block]))
                for batch in decoder.batches(block, 0, end_row):
                    found.update(filter(None, batch.column(column).to_pylist()))
    except (DataError, BudgetExceeded):
        logger.debug("the words of '%s' were not read", column, exc_info=True)
    return sorted(found)


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
    num_rows, num_workers, num_batches = num_shuffle_rows or 0, data.num_workers or 0, source.num_batches()
    num_workers = share_data_path(
        budget,
        {"": source.scanned, **(others or {})},
        shuffle_rows=num_rows,
        prefetch_bytes=data.prefetch,
        by_cost=by_cost,
        # One that has no batch to parse is not started.
        num_workers=num_workers if num_batches is None else min(num_workers, num_batches),
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
