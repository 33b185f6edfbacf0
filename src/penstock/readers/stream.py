"""What every reader and every batching stage is: something one can iterate, stop, save and continue."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import pyarrow as pa

from penstock.config.errors import CheckpointError
from penstock.readers.order import ConsumedRows
from penstock.runtime.world import State

T_co = TypeVar("T_co", covariant=True)


class Stream(Protocol[T_co]):
    """Items in a fixed order, with a position in it.

    A stream is its own cursor: iterating goes on from its position and moves it, so that leaving a loop and
    starting another continues, and iterating after the end gives nothing until `set_epoch`.
    """

    def __iter__(self) -> Iterator[T_co]:
        """The items from the present position to the end of the epoch."""
        ...

    def state_dict(self) -> State:
        """The position after the last item that was given out. Cheap: stages ask after every item."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Go to a position; reading starts with the next iteration."""
        ...

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        ...


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Where a stream of rows is: how many rows it has given out in this epoch.

    `done` are the rows that other streams had given out before this one took over the rest of the epoch.
    """

    epoch: int
    row: int = 0
    consumed: ConsumedRows | None = None

    def at(self, row: int) -> Self:
        """Another row of the same epoch."""
        return type(self)(self.epoch, row, self.consumed)


class RecordStream(ABC):
    """A stream of record batches that all have one schema, `ROW_COLUMN` last; its position is a number of rows.

    The rows come in one order, which follows from `order` alone. So a position needs no more than a count, and any
    stage can be entered at any row: nothing that waits in a buffer is ever saved.
    """

    num_waiting: Callable[[], int] | None = None
    """How many batches wait where somebody reads ahead: with few left, a reader may take more cores for the next."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of every batch."""

    @property
    @abstractmethod
    def order(self) -> State:
        """Everything that the order of rows follows from: files, seeds, shard, sizes of windows."""

    @property
    @abstractmethod
    def position(self) -> StreamPosition:
        """The position after the last batch that was given out."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Record batches from the present position to the end of the epoch; none is empty."""

    @abstractmethod
    def seek(self, position: StreamPosition) -> None:
        """Go to a position; reading starts with the next iteration."""

    @abstractmethod
    def check_order(self, saved: State) -> None:
        """Refuse a position that was saved in another order of rows, with the reason."""

    def close(self) -> None:
        """End threads and close files, where there are any; the stream can be iterated again."""
        return

    def state_dict(self) -> State:
        """The position, and the order in which it means something."""
        position = self.position
        done = None if position.consumed is None else position.consumed.state
        return {"epoch": position.epoch, "row": position.row, "done": done, "order": self.order}

    def load_state_dict(self, state: State) -> None:
        """Go to a position that was saved in the same order."""
        if not {"epoch", "row", "done", "order"} <= set(state or ()):
            raise CheckpointError(f"{state!r:.80} is no place in the data; load what state_dict() gave")
        self.check_order(state["order"])
        done = None if state["done"] is None else ConsumedRows.of_state(state["done"])
        self.seek(StreamPosition(state["epoch"], state["row"], done))

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self.seek(StreamPosition(epoch))
