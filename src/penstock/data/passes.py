"""One pass over a Dataset: its elements, its position, how many there are, and what it may take."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from importlib import import_module
from typing import Any, Self, TypeAlias

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, CheckpointError
from penstock.config.sizes import MIB, format_size
from penstock.data.arguments import check_position, own_words
from penstock.data.arrow_numpy import (
    Origin,
    columns_of,
    element_bytes,
    fill_nulls,
    is_float,
    is_whole_number,
    leaf_type,
    record_batch_of,
)
from penstock.data.chain import ByCost, ByRows, Chain
from penstock.data.cut import CostCut, consumed_with
from penstock.data.map_rows import Row, row_of
from penstock.data.memory_plan import share_data_path
from penstock.data.prefetch import Prefetch
from penstock.data.resharding import state_for
from penstock.data.window import window_bytes
from penstock.readers.order import ConsumedRows
from penstock.readers.scan import ONE_SHARD, ScannedFiles
from penstock.readers.stream import ROW_FIELD, RecordStream, StreamPosition, check_order
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import default_limit
from penstock.runtime.world import State

logger = logging.getLogger(__name__)

READER_CAP_BYTES = 512 * MIB
"""Of a Dataset without .memory(limit)."""
_CUT_BYTES = MIB
"""At least, where batches are cut by cost: the rows of a small window may be larger than the mean."""

Opened: TypeAlias = "Elements | Prefetch[Any]"


class Form(Enum):
    """Dicts of NumPy arrays, Arrow record batches, or dicts of tensors."""

    NUMPY = "numpy"
    ARROW = "arrow"
    TORCH = "torch"


def open_pass(chain: Chain, form: Form) -> Opened:
    """The elements of one pass, from the start of epoch 0; made ahead by a thread where the chain says so."""
    budget = share_memory(chain, chain.scan())
    elements, share = Elements(chain.open_rows(budget), chain, form), budget.shares.get("prefetch")
    return elements if share is None else Prefetch(elements, share, element_bytes)


def share_memory(chain: Chain, scanned: ScannedFiles) -> MemoryBudget:
    """A budget with a share for each stage that holds rows, or a BudgetExceeded that says who needs what."""
    budget = MemoryBudget(default_limit() if chain.memory_bytes is None else chain.memory_bytes)
    by_cost, shuffle_rows, shuffle_bytes = isinstance(chain.cut, ByCost), chain.shuffle_rows(), 0
    if shuffle_rows:
        shuffle_bytes = window_bytes(scanned.columns.append(ROW_FIELD), shuffle_rows, scanned.row_bytes)
    needs = {
        f"reading {chain.source.name} needs": scanned.sizes.min_bytes,
        "shuffling": shuffle_bytes,
        "prefetch": chain.prefetch_bytes or 0,
        "cut": _CUT_BYTES * by_cost,
    }
    if sum(needs.values()) > budget.limit_bytes:
        parts = [f"{name} {format_size(num_bytes)}" for name, num_bytes in needs.items() if num_bytes]
        advice = "raise the limit of .memory(limit)"
        if shuffle_bytes:
            advice += " or lower the buffer of .shuffle(buffer)"
        raise BudgetExceeded(
            f"{', '.join(parts)}: more than the {format_size(budget.limit_bytes)} that there are; {advice}"
        )
    share_data_path(
        budget,
        {"": scanned},
        shuffle_rows=shuffle_rows,
        prefetch_bytes=chain.prefetch_bytes or 0,
        by_cost=by_cost,
        reader_cap_bytes=None if chain.memory_bytes else READER_CAP_BYTES,
        is_ahead=False,
    )
    return budget


class Elements:
    """What one pass over a Dataset gives: its epochs one after another, as a stream that is its own cursor.

    A pass begins with `first_epoch`. An epoch that follows begins when the next element is asked for: the position
    after the last element of an epoch is the end of that epoch.
    """

    def __init__(self, stream: RecordStream, chain: Chain, form: Form) -> None:
        self._stream, self._chain, self._is_as_read = stream, chain, form is Form.ARROW and not chain.maps
        self._finish: Callable[[Any], Any] | None = record_batch_of if form is Form.ARROW else None
        """Makes of a dict of arrays (or of values, where elements are rows) what is given out."""
        if form is Form.TORCH:
            # By name: data stands below the first package that knows torch.
            self._finish = import_module("penstock.tensors.dataset").tensors_of
        self._names, self._columns = list(chain.names()), list(chain.names().values())
        self._shapes = chain.shapes()
        self._integers = {field.name for field in chain.schema() if is_whole_number(leaf_type(field.type))}
        """Of which nobody was told yet that they have rows without a value."""
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of the pass that begins with this epoch."""
        self.first_epoch, self._given_in_all = epoch, 0
        self._enter(epoch)

    def _enter(self, epoch: int) -> None:
        self._position, self._row, self._given_in_epoch = StreamPosition(epoch), 0, 0

    def __iter__(self) -> Iterator[Any]:
        chain = self._chain
        while True:
            is_whole = self._row == 0 and self._position.consumed is None
            yield from self._rest_of_epoch()
            if self._given_in_epoch == 0 and is_whole:
                num_rows = chain.scan().num_rows
                if not num_rows:
                    warnings.warn(
                        f"{chain.source.name}: has no rows, so that nothing is given out", stacklevel=2
                    )
                elif chain.shard is None and (chain.cut is not None or chain.conditions or chain.maps):
                    why = "give no whole batch"
                    if chain.conditions or chain.maps:
                        why = "are all left out, or give no whole batch"
                    warnings.warn(f"{chain.source.name}: its {num_rows} rows {why}", stacklevel=2)
                return
            is_last = chain.epochs is not None and self._position.epoch + 1 == self.first_epoch + chain.epochs
            if self._is_full() or is_last:
                return
            self._enter(self._position.epoch + 1)

    def _rest_of_epoch(self) -> Iterator[Any]:
        """As many elements as are to be taken; each is counted before it is given out."""
        max_batches = self._chain.take_batches
        if self._is_full() or (max_batches is not None and self._given_in_epoch >= max_batches):
            return
        self._stream.position = self._position.at(self._row)
        for record_batch in self._stream:
            for element, row in self._elements(record_batch):
                self._row = row
                self._given_in_epoch += 1
                self._given_in_all += 1
                yield element
                if self._is_full() or self._given_in_epoch == max_batches:
                    return

    def _is_full(self) -> bool:
        return self._chain.take_in_all is not None and self._given_in_all >= self._chain.take_in_all

    def _elements(self, record_batch: pa.RecordBatch) -> Iterator[tuple[Any, int]]:
        """The batch, or where nothing cuts batches, its rows; each with the rows of the source consumed with it."""
        chain, finish, end_row = self._chain, self._finish, self._stream.position.row
        rows = fill_nulls(record_batch.select(self._columns), chain.fills)
        if self._names != self._columns:
            rows = rows.rename_columns(self._names)
        if self._is_as_read:
            yield rows, end_row
            return
        origin = Origin(self._position.epoch, record_batch, self._stream.file_paths)
        columns = columns_of(rows, origin, self._shapes)
        for name in [name for name in self._integers if is_float(columns[name])]:
            self._integers.remove(name)
            logger.warning(
                "column '%s' lacks values, first in the batch that begins with %s: it is float64 there, with NaN; "
                "keep %s with .fill_nulls(%s=...)",
                *(name, origin.describe(0), rows.schema.field(name).type, name),
            )
        if chain.cut is not None:
            for step in chain.maps:
                columns, origin = step.on_batch(columns, origin)
                if not origin.num_rows:
                    return
            yield columns if finish is None else finish(columns), end_row
            return
        consumed = consumed_with(record_batch, end_row - record_batch.num_rows)
        for index in range(record_batch.num_rows):
            row: Row | None = row_of(columns, index)
            for step in chain.maps:
                row = None if row is None else step.on_row(row, origin, index)
            if row is not None:
                yield row if finish is None else finish(row), int(consumed[index])

    def state_dict(self) -> State:
        done = self._position.consumed
        rows = {
            "epoch": self._position.epoch,
            "row": self._row,
            "done": None if done is None else done.state,
            "order": self._stream.order,
        }
        return {
            "first_epoch": self.first_epoch,
            "given_in_epoch": self._given_in_epoch,
            "given_in_all": self._given_in_all,
            "first_rows": self._chain.first_rows,
            "rows": rows,
        }

    def load_state_dict(self, state: State) -> None:
        check_position(state)
        rows = state["rows"]
        check_order(rows["order"], self._stream.order, self._stream.file_paths)
        self.first_epoch = state["first_epoch"]
        self._given_in_epoch, self._given_in_all = state["given_in_epoch"], state["given_in_all"]
        done = None if rows["done"] is None else ConsumedRows.of_state(rows["done"])
        self._position, self._row = StreamPosition(rows["epoch"], rows["row"], done), rows["row"]


class Pass(Iterator[Any]):
    """One iteration over a Dataset: `next` gives elements, `state_dict` the position after the last of them.

    A background thread, where there is one, ends with the iteration, with `close()`, or when nobody holds this any
    more. `on_end` is called when the last element was given.
    """

    def __init__(self, opened: Opened, on_end: Callable[[], None]) -> None:
        self._opened = opened
        self._on_end = on_end
        self._elements = _elements(opened)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._elements)
        except StopIteration:
            if self._elements is not _NOTHING:
                self._elements = _NOTHING
                self._on_end()
            raise
        except BaseException:
            self._elements = _NOTHING
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state_dict(self) -> State:
        return self._opened.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.close()
        with own_words():
            self._opened.load_state_dict(state)
        self._elements = _elements(self._opened)

    def close(self) -> None:
        """End reading, and the background thread where there is one; the position stays."""
        if self._elements is not _NOTHING:
            self._elements.close()  # type: ignore[attr-defined]  # a generator


_NOTHING: Iterator[Any] = iter(())


def _elements(opened: Opened) -> Iterator[Any]:
    """The elements; a function of its own, so that it ends as soon as the pass is let go."""
    try:
        with own_words():
            yield from opened
    finally:
        if isinstance(opened, Prefetch):
            opened.close()


def position_in(chain: Chain, state: Any) -> State:
    """The position at which this chain goes on, checked against what the chain says."""
    is_of_all_shards = isinstance(state, list | tuple)
    states: list[Any] = list(state) if is_of_all_shards else [state]
    if not states:
        raise CheckpointError("there are no positions in this list; load those of all shards")
    shuffle = None
    if chain.shuffling is not None:
        shuffle = {"num_rows": chain.shuffle_rows(), "seed": chain.shuffling.seed}
    for each in states:
        check_position(each)
        if each["first_rows"] != chain.first_rows:
            was, present = (
                "all rows" if rows is None else f".take({rows})"
                for rows in (each["first_rows"], chain.first_rows)
            )
            raise CheckpointError(f"the position was saved with {was}, and this Dataset is with {present}")
        saved_shuffle = each["rows"]["order"].get("shuffle")
        if saved_shuffle != shuffle:
            was, present = (
                "without .shuffle"
                if order is None
                else f"with .shuffle in {order['num_rows']} rows and seed {order['seed']}"
                for order in (saved_shuffle, shuffle)
            )
            raise CheckpointError(
                f"the position was saved {was}, and this Dataset is {present}; the order of rows is another one"
            )
    return _of_all_shards(states, chain) if is_of_all_shards else states[0]


def _of_all_shards(states: Sequence[State], chain: Chain) -> State:
    shard = chain.shard or ONE_SHARD
    rows = state_for([state["rows"] for state in states], chain.scan().blocks, shard)
    if shard.count == len(states):
        return next(state for state in states if state["rows"] is rows)
    if chain.take_rows is not None or chain.take_batches is not None or chain.take_in_all is not None:
        raise CheckpointError(
            f"the positions are of {len(states)} shards, and this is one of {shard.count}: what .take left of each "
            "cannot be divided again; go on with as many shards, or call .take before .shard"
        )
    return {**states[0], "given_in_epoch": 0, "given_in_all": 0, "rows": rows}


def num_elements(chain: Chain, first_epoch: int) -> int:
    """Rows or batches of the pass that begins with an epoch; cut by cost, the cost column is read to find out."""
    if chain.epochs is None:
        if chain.take_in_all is None:
            raise TypeError("a Dataset with epochs without end has no length")
        return chain.take_in_all
    if (isinstance(chain.cut, ByCost) or chain.conditions) and chain.shuffling:
        total = sum(_of_epoch(chain, first_epoch + number) for number in range(chain.epochs))
    else:
        total = chain.epochs * _of_epoch(chain, first_epoch)
    return total if chain.take_in_all is None else min(total, chain.take_in_all)


def _of_epoch(chain: Chain, epoch: int) -> int:
    start, end = (chain.shard or ONE_SHARD).bounds(chain.scan().num_rows)
    num_rows = end - start if chain.take_rows is None else min(end - start, chain.take_rows)
    if chain.conditions and num_rows and not isinstance(chain.cut, ByCost):
        num_rows = sum(batch.num_rows for batch in _inner_rows(replace(chain, cut=None), epoch))
    if chain.cut is None:
        return num_rows
    if isinstance(chain.cut, ByRows):
        num_batches = chain.cut.num_batches(num_rows)
    elif num_rows:
        stream = _inner_rows(chain, epoch)
        assert isinstance(stream, CostCut)
        num_batches = stream.count()
    else:
        num_batches = 0
    return num_batches if chain.take_batches is None else min(num_batches, chain.take_batches)


def _inner_rows(chain: Chain, epoch: int) -> RecordStream:
    """The rows of an epoch, with the columns alone that tell which are left and how they are cut."""
    columns = chain.with_inner(()) or tuple(chain.names().values())[:1]
    scanned = chain.source.scan(columns, chain.first_rows)
    stream = chain.open_rows(share_memory(chain, scanned), scanned)
    stream.set_epoch(epoch)
    return stream


def rows_that_hold(chain: Chain, count: int) -> int:
    """How many rows of the source, from its first on, hold `count` that pass its filters; all, where they are fewer."""
    stream = _inner_rows(chain, 0)
    for batch in stream:
        if batch.num_rows >= count:
            return int(consumed_with(batch, stream.position.row - batch.num_rows)[count - 1])
        count -= batch.num_rows
    return chain.scan().num_rows
