"""What a Dataset is before it is read: a source, and what is done with its rows. A run file compiles to the same."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError, hint
from penstock.config.sizes import format_size
from penstock.data.arguments import kind_of
from penstock.data.cut import CostCut, CostRules, QuarantineFilter, RowCut, TakeRows
from penstock.data.filter import Condition, Filter
from penstock.data.map_rows import MapStep
from penstock.data.prefetch import ReadAhead
from penstock.data.row_cost import FUNCTIONS, ColumnCost, CostOf, SequenceLength, cost_of_expression
from penstock.data.shuffle import Bucketing, Shuffle, ShuffleQuality
from penstock.data.sources import Source
from penstock.readers.columns import is_list
from penstock.readers.order import Shard
from penstock.readers.scan import ONE_SHARD, BlockStream, ScannedFiles
from penstock.readers.stream import Quarantine, RecordStream
from penstock.runtime.budget import MemoryBudget


@dataclass(frozen=True, slots=True)
class Shuffling:
    buffer_bytes: int | None
    """None: `num_rows` says how large the buffer is."""
    seed: int
    num_rows: int | None = None


@dataclass(frozen=True, slots=True)
class ByRows:
    num_rows: int
    drop_remainder: bool = False

    def num_batches(self, num_rows: int) -> int:
        whole, rest = divmod(num_rows, self.num_rows)
        return whole + (rest > 0 and not self.drop_remainder)


@dataclass(frozen=True, slots=True)
class ByCost:
    cost: CostOf
    rules: CostRules


UNCUT = ByRows(1024)
"""Where elements are rows: so many are drawn at once, or wait to be given out one by one."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A source and everything that the methods of a Dataset said, in the order in which rows pass it."""

    source: Source
    columns: Mapping[str, str] | None = None
    """The columns that are given out: their names, and those at the source; None: all, under their own names."""
    fills: Mapping[str, Any] = field(default_factory=dict)
    """By the name of the column at the source, as everything here that is about a column before it is given out."""
    first_rows: int | None = None
    """Only so many rows of the source, in its order: `take` before `shuffle` and `shard`."""
    shard: Shard | None = None
    shuffling: Shuffling | None = None
    take_rows: int | None = None
    """Only so many rows of each epoch, as they come: `take` after `shuffle` or `shard`, before `batch`."""
    conditions: tuple[Condition, ...] = ()
    """Only rows that meet all of them."""
    cut: ByRows | ByCost | None = None
    """None: elements are rows."""
    maps: tuple[MapStep, ...] = ()
    take_batches: int | None = None
    """Only so many batches of each epoch."""
    epochs: int | None = 1
    """None: without end."""
    take_in_all: int | None = None
    """Only so many elements in all epochs together: `take` after `epochs`."""
    prefetch_bytes: int | None = None
    memory_bytes: int | None = None

    def scan(self) -> ScannedFiles:
        """The rows and columns that are read: those that are given out, that tell the cost, and that filters read."""
        if self.columns is None:
            return self.source.scan(None, self.first_rows)
        return self.source.scan(self.with_inner(self.columns.values()), self.first_rows)

    def with_inner(self, columns: Iterable[str]) -> tuple[str, ...]:
        """These columns, and those that tell which rows are left and how they are cut."""
        cost = self.cut.cost.columns if isinstance(self.cut, ByCost) else ()
        conditions = (column for condition in self.conditions for column in condition.columns)
        return tuple(dict.fromkeys([*columns, *cost, *conditions]))

    def open_rows(self, budget: MemoryBudget, scanned: ScannedFiles | None = None) -> RecordStream:
        """The record batches of an epoch; `scanned` is another look at the rows, of fewer columns."""
        return open_rows(
            scanned or self.scan(),
            budget,
            self.cut or UNCUT,
            shuffle_rows=self.shuffle_rows(),
            seed=self.shuffling.seed if self.shuffling else 0,
            shard=self.shard or ONE_SHARD,
            take_rows=self.take_rows,
            conditions=self.conditions,
        )

    def names(self) -> Mapping[str, str]:
        """The columns that are given out: their names, and those at the source."""
        if self.columns is not None:
            return self.columns
        return {name: name for name in self.source.scan().columns.names}

    def schema(self) -> pa.Schema:
        """The columns that are given out, as they are read."""
        found = self.scan().columns
        return pa.schema([found.field(source).with_name(name) for name, source in self.names().items()])

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Those of `Source.shapes`, by the name that is given out."""
        found = self.source.shapes()
        return {name: found[source] for name, source in self.names().items() if source in found}

    def no_column(self, name: str) -> DataError:
        return DataError(f"{self.source.name}: there is no column '{name}'; {hint(name, list(self.names()))}")

    def source_column(self, name: str) -> str:
        """The column of the source that a name stands for, also where it is not given out."""
        names, known = self.names(), self.source.scan().columns.names
        if name not in names and name not in known:
            raise self.no_column(name)
        return names.get(name, name)

    def shuffle_rows(self) -> int:
        """How many rows the shuffle buffer holds: its bytes over the bytes of a row; 0 without a shuffle."""
        if self.shuffling is None:
            return 0
        scanned = self.scan()
        if self.shuffling.buffer_bytes is None:
            assert self.shuffling.num_rows is not None
            return max(1, min(self.shuffling.num_rows, scanned.num_rows))
        num_rows = self.shuffling.buffer_bytes // scanned.row_bytes
        if num_rows < 2 <= scanned.num_rows:
            raise ConfigError.at(
                "shuffle",
                f"a buffer of {format_size(self.shuffling.buffer_bytes)} holds no two rows of {self.source.name}; "
                f"a row takes {format_size(scanned.row_bytes)}, and the buffer is in bytes",
            )
        return max(1, min(num_rows, scanned.num_rows))


def all_rows(chain: Chain) -> Chain:
    """The rows that a chain reads and filters, in one epoch, of all shards."""
    return Chain(chain.source, chain.columns, first_rows=chain.first_rows, conditions=chain.conditions)


def open_rows(
    scanned: ScannedFiles,
    budget: MemoryBudget,
    cut: ByRows | ByCost,
    *,
    stage_prefix: str = "",
    shuffle_rows: int = 0,
    seed: int = 0,
    bucketing: Bucketing | None = None,
    shard: Shard = ONE_SHARD,
    take_rows: int | None = None,
    conditions: Sequence[Condition] = (),
    as_views: bool = False,
    quality: ShuffleQuality | None = None,
    quarantine: Quarantine | None = None,
) -> RecordStream:
    """The record batches of an epoch: read, shuffled in windows of `shuffle_rows` rows (0: not at all), cut.

    `stage_prefix` stands in front of the names of its shares. `as_views` is for a consumer that lets go of a batch
    before it takes the next. `quality` measures how well rows are mixed; rows in `quarantine` are left out.
    """
    shares = budget.shares
    reader = shares[f"{stage_prefix}reader"]
    stream: RecordStream = BlockStream(scanned, reader, seed if shuffle_rows else None, shard)
    if (read_ahead := shares.get(f"{stage_prefix}read ahead")) is not None:
        stream = ReadAhead(stream, read_ahead)
    if shuffle_rows:
        stream = Shuffle(
            stream,
            shuffle_rows,
            seed,
            shares.get("shuffle"),
            bucketing,
            batch_rows=cut.num_rows if isinstance(cut, ByRows) else None,
            as_views=as_views,
            quality=quality,
        )
    if take_rows is not None:
        stream = TakeRows(stream, take_rows)
    if conditions:
        stream = Filter(stream, conditions)
    if isinstance(cut, ByRows):
        stream = RowCut(stream, cut.num_rows, cut.drop_remainder)
    else:
        stream = CostCut(stream, cut.cost, cut.rules, shares.get(f"{stage_prefix}cut"))
    return stream if quarantine is None else QuarantineFilter(stream, quarantine)


def cost_of(cost: Any, chain: Chain) -> CostOf:
    """What a row costs: the number in a column, or an expression over lengths, as a run file may write it."""
    if not isinstance(cost, str):
        calls = " or ".join(f"{name}(column, ...)" for name in FUNCTIONS)
        raise ConfigError.at("batch", f"cost is {kind_of(cost)}; give the name of a column, or {calls}")
    source, names = chain.source, chain.names()
    schema = source.scan().columns
    is_column = cost in names or cost in schema.names or "(" not in cost
    try:
        lengths = {name: SequenceLength(column) for name, column in names.items()}
        found = ColumnCost(chain.source_column(cost)) if is_column else cost_of_expression(cost, lengths)
    except ValueError as error:
        raise ConfigError.at("batch", str(error)) from error
    for name in found.columns:
        chain.source_column(name)
    try:
        found.check(schema)
    except DataError as error:
        advice = source.advice_on_text(cost) if is_column else ""
        if is_column and is_list(schema.field(found.columns[0]).type):
            advice = f"; for the length of its lists write cost='sum_of_lengths({cost})'"
        raise DataError(f"{source.name}: {error}{advice}") from error
    return found


def describe(chain: Chain) -> str:
    """What was said of a source, in the order in which rows pass it; nothing that only a look at the data tells."""
    shard, shuffling, cut, num_maps = chain.shard, chain.shuffling, chain.cut, len(chain.maps)
    parts = [chain.source.name]

    def add(text: str, value: Any) -> None:
        if value is not None:
            parts.append(text.format(value))

    names = [
        name if name == source else f"{name} (from {source})"
        for name, source in (chain.columns or {}).items()
    ]
    add("columns {}", ", ".join(names) or None)
    add("the first {:,} rows", chain.first_rows)
    add("shard {0.index} of {0.count}", shard)
    if shuffling is not None:
        num_bytes = shuffling.buffer_bytes
        buffer = f"{shuffling.num_rows:,} rows" if num_bytes is None else format_size(num_bytes)
        parts.append(f"shuffled in {buffer} with seed {shuffling.seed}")
    add("{:,} rows of each epoch", chain.take_rows)
    for condition in chain.conditions:
        add("only {}", condition)
    if isinstance(cut, ByRows):
        parts.append(f"batches of {cut.num_rows:,} rows")
    elif cut is not None:
        parts.append(f"batches of {cut.cost.name} up to {cut.rules.limit:g}")
    add("mapped" if num_maps == 1 else "mapped {} times", num_maps or None)
    add("{:,} batches of each epoch", chain.take_batches)
    if chain.epochs != 1:
        parts.append("epochs without end" if chain.epochs is None else f"{chain.epochs} epochs")
    add("{:,} in all", chain.take_in_all)
    add("prefetched in {}", chain.prefetch_bytes and format_size(chain.prefetch_bytes))
    add("inside {}", chain.memory_bytes and format_size(chain.memory_bytes))
    return f"Dataset({'; '.join(parts)})"
