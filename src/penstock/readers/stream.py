"""What every reader and every batching stage is: something one can iterate, stop, save and continue."""

from collections.abc import Iterator
from typing import Protocol, TypeVar

import pyarrow as pa

from penstock.runtime.state import State

T_co = TypeVar("T_co", covariant=True)


class Stream(Protocol[T_co]):
    """Items in a fixed order, with a place in it.

    A stream is its own cursor: iterating goes on from its place and moves it, so that leaving a loop and
    starting another continues, and iterating after the end gives nothing until `set_epoch`.
    """

    def __iter__(self) -> Iterator[T_co]:
        """The items from the present place to the end of the epoch."""
        ...

    def state_dict(self) -> State:
        """The place after the last item that was given out. Cheap: stages ask after every item."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Go to a place; reading starts with the next iteration."""
        ...

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        ...


class RecordStream(Stream[pa.RecordBatch], Protocol):
    """A stream of record batches that all have one schema, `ROW_COLUMN` last."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch."""
        ...


class Reader(RecordStream, Protocol):
    """A stream that begins at files."""

    @property
    def num_rows(self) -> int | None:
        """Rows of one epoch, where the files tell without being read."""
        ...
