"""A stream of record batches -> what a Dataset gives out."""

import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from typing import Any

import pyarrow as pa

from penstock.data.arguments import check_position
from penstock.data.arrow_numpy import Origin, columns_of, fill_nulls, record_batch_of
from penstock.data.chain import Chain
from penstock.data.map_rows import row_of
from penstock.readers.order import ConsumedRows
from penstock.readers.stream import RecordStream, StreamPosition, check_order
from penstock.runtime.world import State

Finish = Callable[[Any], Any]
"""Makes of a dict of arrays (or of values, where elements are rows) what is given out."""


class Form(Enum):
    """Dicts of NumPy arrays, Arrow record batches, or dicts of tensors."""

    NUMPY = "numpy"
    ARROW = "arrow"
    TORCH = "torch"


def finish_of(form: Form, chain: Chain) -> Finish | None:
    if form is Form.TORCH:
        # By name: data stands below the first package that knows torch.
        finish: Finish = import_module("penstock.tensors.dataset").tensors_of
        return finish
    if form is Form.NUMPY:
        return lambda columns: columns
    return record_batch_of if chain.maps else None


class Elements:
    """What one pass over a Dataset gives: its epochs one after another, as a stream that is its own cursor.

    A pass begins with `first_epoch`. An epoch that follows begins when the next element is asked for: the position
    after the last element of an epoch is the end of that epoch. Without `finish`, record batches are given out.
    """

    def __init__(self, stream: RecordStream, chain: Chain, finish: Finish | None) -> None:
        self._stream, self._chain, self._finish = stream, chain, finish
        self._names, self._shapes = chain.names(), chain.source.shapes()
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
                elif chain.shard is None and chain.cut is not None:
                    warnings.warn(
                        f"{chain.source.name}: its {num_rows} rows give no whole batch", stacklevel=2
                    )
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
            for element in self._elements(record_batch):
                self._row = self._row + 1 if self._chain.cut is None else self._stream.position.row
                self._given_in_epoch += 1
                self._given_in_all += 1
                yield element
                if self._is_full() or self._given_in_epoch == max_batches:
                    return

    def _is_full(self) -> bool:
        return self._chain.take_in_all is not None and self._given_in_all >= self._chain.take_in_all

    def _elements(self, record_batch: pa.RecordBatch) -> Iterator[Any]:
        """The batch, or where nothing cuts batches, its rows."""
        chain, finish = self._chain, self._finish
        rows = fill_nulls(record_batch.select(self._names), chain.fills)
        if finish is None:
            yield rows
            return
        origin = Origin(self._position.epoch, record_batch, self._stream.file_paths)
        columns = columns_of(rows, origin, self._shapes)
        if chain.cut is not None:
            for step in chain.maps:
                columns = step.on_batch(columns, origin)
            yield finish(columns)
            return
        for index in range(record_batch.num_rows):
            row = row_of(columns, index)
            for step in chain.maps:
                row = step.on_row(row, origin, index)
            yield finish(row)

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
