"""Iterate over a Dataset, save the position, go on from it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeAlias

from penstock.config.errors import BudgetExceeded, CheckpointError
from penstock.config.sizes import MIB, format_size
from penstock.data.arguments import check_position, own_words
from penstock.data.arrow_numpy import element_bytes
from penstock.data.chain import ByCost, ByRows, Chain
from penstock.data.cut import CostCut
from penstock.data.elements import Elements, Finish
from penstock.data.memory_plan import StageShares, share_data_path
from penstock.data.prefetch import Prefetch
from penstock.data.resharding import state_for
from penstock.data.window import window_bytes
from penstock.readers.order import Shard
from penstock.readers.scan import ScannedFiles
from penstock.readers.stream import ROW_FIELD
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import default_limit
from penstock.runtime.world import State

READER_CAP_BYTES = 512 * MIB
"""Of a Dataset without .memory(limit)."""
_CUT_BYTES = MIB
"""At least, where batches are cut by cost: the rows of a small window may be larger than the mean."""

Opened: TypeAlias = "Elements | Prefetch[Any]"


def share_memory(chain: Chain, scanned: ScannedFiles) -> MemoryBudget:
    """A budget with a share for each stage that holds rows, or a BudgetExceeded that says who needs what."""
    budget = MemoryBudget(default_limit() if chain.memory_bytes is None else chain.memory_bytes)
    by_cost, shuffle_rows, shuffle_bytes = isinstance(chain.cut, ByCost), chain.shuffle_rows(), 0
    if shuffle_rows:
        shuffle_bytes = window_bytes(scanned.columns.append(ROW_FIELD), shuffle_rows, scanned.row_bytes)
    needs = {
        f"reading {chain.source.name} needs": scanned.min_bytes,
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


def open_chain(chain: Chain, finish: Finish | None) -> Opened:
    """The elements of one pass, from the start of epoch 0; made ahead by a thread where the chain says so."""
    shares = StageShares.of(share_memory(chain, chain.scan()))
    elements = Elements(chain.open_rows(shares), chain, finish)
    return elements if shares.prefetch is None else Prefetch(elements, shares.prefetch, element_bytes)


class Cursor:
    """The latest pass over a Dataset.

    A new pass begins with the epoch after a pass that came to its end, so that each has its own order of rows. One
    that was left before its end is begun again; to go on from where it was left, load its position.
    """

    def __init__(self, open_pass: Callable[[], Opened]) -> None:
        self._open = open_pass
        self._latest: Opened | None = None
        self._is_ready = False
        """Whether the next pass begins at the position of the latest."""

    def begin(self) -> "Pass":
        latest = self._ready()
        self._is_ready = False
        return Pass(latest, self)

    def end(self, opened: Opened) -> None:
        """A pass came to its end: the next one begins with the epoch after its last."""
        opened.set_epoch(opened.state_dict()["rows"]["epoch"] + 1)
        self._is_ready = self._is_ready or opened is self._latest

    @property
    def first_epoch(self) -> int:
        """The epoch with which the latest pass began, or the next one does."""
        return 0 if self._latest is None else int(self._latest.state_dict()["first_epoch"])

    @property
    def is_at_start(self) -> bool:
        """Whether the next pass is a whole one."""
        return self._latest is None or not self._is_ready or self._latest.state_dict()["rows"]["row"] == 0

    def state_dict(self) -> State:
        """The position of the latest pass; the start of the next, once that came to its end."""
        return (self._latest or self._ready()).state_dict()

    def load_state_dict(self, state: State) -> None:
        with own_words():
            opened = self._open()
            opened.load_state_dict(state)
        self._latest, self._is_ready = opened, True

    def set_epoch(self, epoch: int) -> None:
        with own_words():
            self._latest = self._open()
        self._latest.set_epoch(epoch)
        self._is_ready = True

    def _ready(self) -> Opened:
        if self._latest is None or not self._is_ready:
            self.set_epoch(self.first_epoch)
        assert self._latest is not None
        return self._latest


class Pass(Iterator[Any]):
    """One iteration over a Dataset: `next` gives elements, `state_dict` the position after the last of them.

    A background thread, where there is one, ends with the iteration, with `close()`, or when nobody holds this any
    more.
    """

    def __init__(self, opened: Opened, cursor: Cursor) -> None:
        self._opened = opened
        self._cursor = cursor
        self._elements = _elements(opened)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._elements)
        except StopIteration:
            if self._elements is not _NOTHING:
                self._elements = _NOTHING
                self._cursor.end(self._opened)
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
        _close(self._elements)


_NOTHING: Iterator[Any] = iter(())


def _elements(opened: Opened) -> Iterator[Any]:
    """The elements; a function of its own, so that it ends as soon as the pass is let go."""
    try:
        with own_words():
            yield from opened
    finally:
        _close(opened)


def _close(opened: Any) -> None:
    if (close := getattr(opened, "close", None)) is not None:
        close()


def position_in(chain: Chain, state: Any) -> State:
    """The position at which this chain goes on, checked against what the chain says."""
    is_of_all_shards = isinstance(state, list | tuple)
    states: list[Any] = list(state) if is_of_all_shards else [state]
    if not states:
        raise CheckpointError("there are no places in this list; load those of all shards")
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
    shard = chain.shard or Shard()
    rows = state_for([state["rows"] for state in states], chain.scan().blocks, shard)
    if shard.count == len(states):
        return next(state for state in states if state["rows"] is rows)
    if chain.take_rows is not None or chain.take_batches is not None or chain.take_in_all is not None:
        raise CheckpointError(
            f"the places are of {len(states)} shards, and this is one of {shard.count}: what .take left of each cannot "
            "be cut anew; go on with as many shards, or call .take before .shard"
        )
    return {**states[0], "given_in_epoch": 0, "given_in_all": 0, "rows": rows}


def num_elements(chain: Chain, first_epoch: int) -> int:
    """Rows or batches of the pass that begins with an epoch; cut by cost, the cost column is read to find out."""
    if chain.epochs is None:
        if chain.take_in_all is None:
            raise TypeError("a Dataset with epochs without end has no length")
        return chain.take_in_all
    if isinstance(chain.cut, ByCost) and chain.shuffling:
        total = sum(_of_epoch(chain, first_epoch + number) for number in range(chain.epochs))
    else:
        total = chain.epochs * _of_epoch(chain, first_epoch)
    return total if chain.take_in_all is None else min(total, chain.take_in_all)


def _of_epoch(chain: Chain, epoch: int) -> int:
    start, end = (chain.shard or Shard()).bounds(chain.scan().num_rows)
    num_rows = end - start if chain.take_rows is None else min(end - start, chain.take_rows)
    if chain.cut is None:
        return num_rows
    if isinstance(chain.cut, ByRows):
        num_batches = chain.cut.num_batches(num_rows)
    elif num_rows:  # one pass over the columns that tell the cost
        scanned = chain.source.scan(chain.cut.cost.columns, chain.first_rows)
        stream = chain.open_rows(StageShares.of(share_memory(chain, scanned)), scanned)
        assert isinstance(stream, CostCut)
        stream.set_epoch(epoch)
        num_batches = stream.count()
    else:
        num_batches = 0
    return num_batches if chain.take_batches is None else min(num_batches, chain.take_batches)
