"""A stream of record batches -> what a Dataset gives out."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any

import pyarrow as pa

from penstock.data.arguments import check_position
from penstock.data.arrow_numpy import Origin, columns_of, fill_nulls, record_batch_of
from penstock.data.chain import Chain
from penstock.data.map_rows import row_of
from penstock.readers.order import ConsumedRows
from penstock.readers.stream import RecordStream, StreamPosition
from penstock.runtime.world import State

Finish = Callable[[Any], Any]
"""Makes of a dict of arrays (or of values, where elements are rows) what is given out."""


class Form(Enum):
    """Dicts of NumPy arrays, Arrow record batches, or dicts of tensors."""

    NUMPY = "numpy"
    ARROW = "arrow"
    TORCH = "torch"


def finish_of(form: Form, chain: Chain) -> Finish | None:
    """What is made of each dict of arrays; None: record batches are given out before they become one."""
    if form is Form.TORCH:
        # By name: data stands below the first package that knows torch.
        finish: Finish = import_module("penstock.tensors.dataset").tensors_of
        return finish
    if form is Form.NUMPY:
        return lambda columns: columns
    return record_batch_of if chain.maps else None


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes elements of record batches."""

    chain: Chain
    names: list[str]
    shapes: Mapping[str, tuple[int, ...]]
    file_paths: Sequence[str]
    finish: Finish | None
    """None: record batches are given out as they are."""

    def batch(self, record_batch: pa.RecordBatch, epoch: int) -> Any:
        rows = self._selected(record_batch)
        if self.finish is None:
            return rows
        origin = Origin(epoch, record_batch, self.file_paths)
        columns = columns_of(rows, origin, self.shapes)
        for step in self.chain.maps:
            columns = step.on_batch(columns, origin)
        return self.finish(columns)

    def rows(self, record_batch: pa.RecordBatch, epoch: int) -> Iterator[Any]:
        """The rows of a batch, each made when it is asked for."""
        origin = Origin(epoch, record_batch, self.file_paths)
        columns = columns_of(self._selected(record_batch), origin, self.shapes)
        for index in range(record_batch.num_rows):
            row = row_of(columns, index)
            for step in self.chain.maps:
                row = step.on_row(row, origin, index)
            yield row if self.finish is None else self.finish(row)

    def _selected(self, record_batch: pa.RecordBatch) -> pa.RecordBatch:
        return fill_nulls(record_batch.select(self.names), self.chain.fills)


class Elements(ABC):
    """What one pass over a Dataset gives: its epochs one after another, as a stream that is its own cursor.

    A pass begins with `first_epoch`. An epoch that follows begins when the next element is asked for: the position
    after the last element of an epoch is the end of that epoch.
    """

    def __init__(self, stream: RecordStream, maker: Maker) -> None:
        self._stream = stream
        self._maker = maker
        self._chain = maker.chain
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of the pass that begins with this epoch."""
        self.first_epoch = epoch
        self._given_in_all = 0
        self._enter(epoch)

    @property
    def end_epoch(self) -> int | None:
        """The first epoch that is not of this pass; None: it has no end."""
        return None if self._chain.epochs is None else self.first_epoch + self._chain.epochs

    def __iter__(self) -> Iterator[Any]:
        """The elements from the present position to the end of the pass."""
        while True:
            is_whole = self._row == 0 and self._position.consumed is None
            yield from self._limited()
            if self._given_in_epoch == 0 and is_whole:
                _warn_of_nothing(self._chain)
                return
            if self._is_full() or self._position.epoch + 1 == self.end_epoch:
                return
            self._enter(self._position.epoch + 1)

    def state_dict(self) -> State:
        """The position after the last element given out."""
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
        self._stream.check_order(rows["order"])
        self.first_epoch = state["first_epoch"]
        self._given_in_epoch = state["given_in_epoch"]
        self._given_in_all = state["given_in_all"]
        done = None if rows["done"] is None else ConsumedRows.of_state(rows["done"])
        self._position = StreamPosition(rows["epoch"], rows["row"], done)
        self._row = rows["row"]

    def _enter(self, epoch: int) -> None:
        self._given_in_epoch = 0
        self._position = StreamPosition(epoch)
        self._row = 0

    def _is_full(self) -> bool:
        return self._chain.take_in_all is not None and self._given_in_all >= self._chain.take_in_all

    def _limited(self) -> Iterator[Any]:
        """The elements of the present epoch, as many as are to be taken; each is counted before it is given out."""
        most = self._chain.take_batches
        if self._is_full() or (most is not None and self._given_in_epoch >= most):
            return
        self._stream.seek(self._position.at(self._row))
        for element, row in self._of_epoch():
            self._row = row
            self._given_in_epoch += 1
            self._given_in_all += 1
            yield element
            if self._is_full() or self._given_in_epoch == most:
                return

    @abstractmethod
    def _of_epoch(self) -> Iterator[tuple[Any, int]]:
        """Elements from the stream's position on, each with the number of rows that are given out after it."""


class Batches(Elements):
    """Elements are batches, as the stream cuts them."""

    def _of_epoch(self) -> Iterator[tuple[Any, int]]:
        for record_batch in self._stream:
            yield self._maker.batch(record_batch, self._position.epoch), self._stream.position.row


class Rows(Elements):
    """Elements are rows."""

    def _of_epoch(self) -> Iterator[tuple[Any, int]]:
        row = self._row
        for record_batch in self._stream:
            for element in self._maker.rows(record_batch, self._position.epoch):
                row += 1
                yield element, row


def _warn_of_nothing(chain: Chain) -> None:
    """Say that a whole epoch gave nothing; not of one of more shards than there are rows."""
    num_rows = chain.scan().num_rows
    if not num_rows:
        warnings.warn(f"{chain.source.name}: has no rows, so that nothing is given out", stacklevel=3)
    elif chain.shard is None and chain.cut is not None:
        warnings.warn(f"{chain.source.name}: its {num_rows} rows give no whole batch", stacklevel=3)
